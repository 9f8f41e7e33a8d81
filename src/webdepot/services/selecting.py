"""Which sites, and may we? Every harvest passes the gate here (law: one gate decides whether a target may be harvested)."""

from collections.abc import Sequence

from webdepot.archive import Archive
from webdepot.errors import NotPermitted
from webdepot.model import Purpose, Target
from webdepot.provenance import Event, append
from webdepot.selection import permission, targets
from webdepot.selection.permission import Basis, Ground
from webdepot.url import Url, host_of


def nominate(archive: Archive, seeds: Sequence[Url], *, collection: str, name: str = "") -> Target:
    """The target of these seeds; a new one is registered with an event."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        target, is_new = targets.register(
            connection, seeds, name=name or host_of(seeds[0]), collection=collection, purpose=Purpose.HERITAGE, now=now
        )
        if is_new:
            append(
                connection,
                Event(at=now, agent=archive.agent, action="nominated", subject_kind="target", subject=str(target.id), message=target.name),
            )
    return target


def admit(archive: Archive, target: Target, bases: Sequence[Basis]) -> None:
    """Ask the gate and keep its verdict; NotPermitted says what is missing."""
    now = archive.clock()
    verdict = permission.may_harvest(bases, now.date())
    with archive.database.transaction() as connection:
        targets.keep_verdict(connection, target.id, "may harvest", verdict, agent=archive.agent, now=now)
    if not verdict:
        raise NotPermitted(f"{target.name} may not be harvested: {verdict.reason} ({verdict.rule}).")


def operators_decision(archive: Archive) -> Basis:
    """The ground of `webdepot archive`: whoever typed the command answers for it, and the record says so."""
    return Basis(ground=Ground.OPERATOR, since=archive.clock().date(), reason=f"asked for on the command line by {archive.agent}")
