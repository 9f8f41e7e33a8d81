"""The second navigation bar of the portal, for staff: five groups of links with counts of what waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.accounts.accounts import STAFF, Person, Role
from webdepot.archive import Archive
from webdepot.services.admin import tasks
from webdepot.services.admin.tasks import TaskKind

_ROLES: Mapping[str, frozenset[Role]] = {
    "/users": frozenset({Role.ADMINISTRATOR}),
    "/machines": frozenset({Role.ADMINISTRATOR}),
    "/import": frozenset({Role.CURATOR, Role.ADMINISTRATOR}),
}
"""Who may follow a link; the others are for all staff."""
_WAITING: Mapping[str, Sequence[TaskKind]] = {
    "/targets": (
        TaskKind.SUGGESTED,
        TaskKind.NOMINATED,
        TaskKind.JUDGED,
        TaskKind.LOOK_AGAIN,
        TaskKind.SELECTED,
    ),
    "/letters": (TaskKind.LETTERS,),
    "/cases": (TaskKind.CASES,),
    "/schedule": (TaskKind.FAILED, TaskKind.REFUSED, TaskKind.UNPLANNED),
    "/harvests": (TaskKind.STOPPED,),
    "/review": (TaskKind.REVIEW,),
    "/depot": (TaskKind.DAMAGED,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuLink:
    href: str
    key: str
    """Of its text."""
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuGroup:
    name: str
    links: Sequence[MenuLink]

    @property
    def waiting(self) -> int:
        return sum(link.waiting for link in self.links)


def menu_of(
    groups: Sequence[tuple[str, Sequence[tuple[str, str]]]], archive: Archive, person: Person | None
) -> Sequence[MenuGroup]:
    """The menu with the links that this person may follow; empty for anyone who is not staff."""
    if person is None or not person.roles & STAFF:
        return ()
    counts = {task.kind: task.count for task in tasks.open_work(archive).tasks}
    return [
        MenuGroup(
            name=group,
            links=[
                MenuLink(href=href, key=key, waiting=sum(counts[kind] for kind in _WAITING.get(href, ())))
                for href, key in links
                if person.roles & _ROLES.get(href, STAFF)
            ],
        )
        for group, links in groups
    ]
