"""The second navigation bar of the portal, for staff: five groups of links with counts of what waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.accounts.accounts import Person
from webdepot.accounts.roles import ADMINISTRATORS, CURATORS, STAFF, Role
from webdepot.archive import Archive
from webdepot.services.admin import tasks
from webdepot.services.admin.tasks import TaskKind

_GROUPS = (
    (
        "select",
        (
            ("/targets", "targets.title"),
            ("/letters", "letters.title"),
            ("/criteria", "criteria.title"),
            ("/cases", "cases.title"),
            ("/rules", "rules.title"),
            ("/organisations", "organisations.title"),
        ),
    ),
    (
        "harvest",
        (
            ("/schedule", "schedule.title"),
            ("/harvests", "harvests.title"),
            ("/review", "review.title"),
            ("/profiles", "profiles.title"),
            ("/import", "imports.title"),
        ),
    ),
    ("keep", (("/depot", "depot.nav"), ("/formats", "formats.title"), ("/partners", "partners.title"))),
    (
        "insight",
        (
            ("/statistics", "statistics.nav"),
            ("/jobs", "jobs.title"),
            ("/machines", "machines.title"),
            ("/audit", "audit.title"),
        ),
    ),
    ("admin", (("/status", "common.status"), ("/users", "users.title"))),
)
"""Groups of links, each a path and a key of its text."""
_ROLES: Mapping[str, frozenset[Role]] = {
    "/users": ADMINISTRATORS,
    "/machines": ADMINISTRATORS,
    "/import": CURATORS,
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
    """Key of its text."""
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuGroup:
    name: str
    links: Sequence[MenuLink]

    @property
    def waiting(self) -> int:
        return sum(link.waiting for link in self.links)


def menu_of(archive: Archive, person: Person | None) -> Sequence[MenuGroup]:
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
        for group, links in _GROUPS
    ]
