"""From the hosts of an organisation to sites: each host its own, or all of them as the seeds of one site,
whose harvests then cover every one of these hosts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.model import TargetId
from webdepot.provenance import append, difference
from webdepot.reasons import said
from webdepot.selection.domains.organisations import KnownHost, Organisation
from webdepot.services.selection import organisations, targets

BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class NominatedHosts:
    new: Sequence[TargetId]
    known: int
    """Hosts that were sites already."""


def own_hosts(archive: Archive, organisation: Organisation) -> list[str]:
    """The hosts that belong to an organisation, by evidence or by decision."""
    return [host.host for host in organisations.hosts_of(archive, organisation) if _is_own(host)]


def nominate(
    archive: Archive,
    organisation: Organisation,
    hosts: Sequence[str],
    *,
    as_one: bool,
    collection: str,
    by: str = "",
) -> NominatedHosts:
    """Nominate hosts of an organisation as sites, or as one site with all of them as seeds. InputError if
    none is given, or one is not known for this organisation.
    """
    targets.check_collection(collection)
    known = {host.host for host in organisations.hosts_of(archive, organisation)}
    chosen = list(dict.fromkeys(hosts))
    if not chosen:
        raise InputError(said("no_host_chosen", "No host was chosen. Tick at least one."))
    if stranger := next((host for host in chosen if host not in known), ""):
        text = "{host} is not a known host of {root}."
        raise InputError(said("host_not_known", text, host=stranger[:100], root=organisation.root))
    groups = [chosen] if as_one else [[host] for host in chosen]
    name = organisation.profile.name or organisation.root
    drafts = [
        targets.draft(
            [f"https://{host}/" for host in group],
            name=name if as_one else group[0],
            collection=collection,
            by=by,
            note=name,
        )
        for group in groups
    ]
    new: list[TargetId] = []
    for start in range(0, len(drafts), BATCH):
        with archive.database.transaction() as connection:
            for draft in drafts[start : start + BATCH]:
                dossier, is_new = targets.enter_in(connection, archive, draft, by=by)
                new += [dossier.id] if is_new else []
    detail = difference({}, {"sites": [int(number) for number in new[:BATCH]], "hosts": len(chosen)})
    with archive.database.transaction() as connection:
        event = archive.event("nominated", "organisation", organisation.root, by=by, detail=detail)
        append(connection, event)
    return NominatedHosts(new=new, known=len(drafts) - len(new))


def _is_own(host: KnownHost) -> bool:
    return host.decision == "accepted" or (host.own is True and host.decision != "rejected")
