"""The domains of an invented organisation, as a survey would have found them, without any network request."""

from collections.abc import Sequence
from datetime import datetime

from webdepot.archive import Archive
from webdepot.selection.domains.ownership_evidence import Group, HostOrigin, Sign
from webdepot.selection.domains.profile import OrganisationProfile, SourcedValue
from webdepot.selection.domains.verdict import HostJudgement
from webdepot.services.selection import discovery

ROOT = "museum-veldwijk.example"
_NAME = "Stichting Museum Veldwijk"
_INSIDE = Sign(
    code="in-range",
    group=Group.NETWORK,
    weight=3.0,
    words="its address 192.0.2.10 is in 192.0.2.0/26, a network of the organisation",
)
_IMPRINT = Sign(code="imprint", group=Group.SITE, weight=4.0, words=f"its imprint names {_NAME} as operator")
_BELOW = Sign(
    code="below-domain",
    group=Group.NAME,
    weight=7.0,
    words=f"kaart.{ROOT} is in {ROOT}, a domain of the organisation",
)
_ZONE = Sign(
    code="same-name-servers",
    group=Group.ZONE,
    weight=2.0,
    words=f"it shares the name server ns1.{ROOT} with the organisation",
)
_OTHER_OWNER = Sign(
    code="registrant-other",
    group=Group.REGISTRY,
    weight=-3.0,
    words=f"its registrant is Toeristisch Platform Lurze, not {_NAME}",
)
HOSTS: Sequence[tuple[str, int, HostOrigin, float, bool | None, tuple[Sign, ...], tuple[str, ...]]] = (
    (f"www.{ROOT}", 1, HostOrigin.ROOT, 0.99, True, (_INSIDE, _IMPRINT), ()),
    (f"kaart.{ROOT}", 1, HostOrigin.MEMBER, 0.99, True, (_BELOW, _INSIDE), (f"www.{ROOT}",)),
    ("www.vlasweek.example", 2, HostOrigin.MEMBER, 0.93, True, (_IMPRINT, _INSIDE), (f"www.{ROOT}",)),
    ("www.grenspost-lurze.example", 3, HostOrigin.MEMBER, 0.62, None, (_ZONE,), (f"www.{ROOT}",)),
    ("www.lurze-toerisme.example", 3, HostOrigin.MEMBER, 0.04, False, (_OTHER_OWNER,), (f"www.{ROOT}",)),
)
"""Host, case, origin, score, verdict, evidence, hosts that link to it."""


def survey(archive: Archive, *, by: str) -> None:
    """Store the profile and the verdicts. Can be repeated."""
    now = archive.clock()
    profile = OrganisationProfile(
        root=ROOT,
        host=f"www.{ROOT}",
        names=(_sourced(_NAME, "imprint", now),),
        ranges=(_sourced("192.0.2.0/26", "RDAP", now),),
        name_servers=(_sourced(f"ns1.{ROOT}", "DNS", now),),
        registrant=(_sourced(_NAME, "RDAP", now),),
        mail_domains=(_sourced(ROOT, "DNS", now),),
        domains=(_sourced(ROOT, "DNS", now), _sourced("vlasweek.example", "imprint", now)),
    )
    rows = [
        (
            HostJudgement(
                host=host,
                domain=host.removeprefix("www."),
                origin=origin,
                score=score,
                own=own,
                signs=signs,
                is_resolved=True,
                is_inside=_INSIDE in signs,
                at=now,
            ),
            case,
            linked_by,
        )
        for host, case, origin, score, own, signs, linked_by in HOSTS
    ]
    discovery.store_survey(archive, profile, rows, by=by)


def _sourced(value: str, source: str, at: datetime) -> SourcedValue:
    return SourcedValue(value=value, source=source, at=at)
