"""Whether rules may accept a harvest without a person. Pure functions of the verdict of the check, the
figures of the harvest and those of the last accepted one.

Rules only accept a harvest that is similar to one that a person accepted before; every other harvest waits
for a person, with the reason.
"""

from dataclasses import dataclass

from webdepot.model import Answer, Verdict
from webdepot.reasons import said


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestFigures:
    documents: int
    size_bytes: int
    not_valid: int = 0
    """Files that are not valid by their format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceLimits:
    after_accepted: int = 1
    documents_differ: float = 0.5
    bytes_differ: float = 0.5
    not_valid: float = 0.1


def by_rules(
    checked: Verdict,
    now: HarvestFigures,
    last: HarvestFigures | None,
    accepted_before: int,
    limits: AcceptanceLimits,
) -> Verdict:
    """ACCEPT if the harvest is within all limits, otherwise PASS with the reason why a person must decide."""
    if checked.answer is not Answer.ACCEPT:
        return _person(checked.rule, checked.reason)
    if accepted_before < limits.after_accepted:
        text = "{accepted} harvests of this site have been accepted so far; the rules require {needed}."
        return _person(
            "too-new", said("too_new", text, accepted=accepted_before, needed=limits.after_accepted)
        )
    if now.not_valid > now.documents * limits.not_valid:
        text = "{not_valid} of {documents} files do not conform to their format."
        return _person("not-valid", said("not_valid", text, not_valid=now.not_valid, documents=now.documents))
    for rule, counted, here, there, limit in (
        (
            "documents-differ",
            "documents",
            now.documents,
            last.documents if last else 0,
            limits.documents_differ,
        ),
        ("bytes-differ", "bytes", now.size_bytes, last.size_bytes if last else 0, limits.bytes_differ),
    ):
        if last is not None and abs(here - there) > there * limit:
            text = (
                f"{{here}} {counted} were harvested, {{there}} last time: "
                "a difference of more than {limit}."
            )
            limit_text = f"{limit:.0%}"
            return _person(rule, said(f"{counted}_differ", text, here=here, there=there, limit=limit_text))
    reason = said(
        "like_the_last", "{checked} It is similar to the last accepted harvest.", checked=checked.reason
    )
    return Verdict(answer=Answer.ACCEPT, rule="within-limits", reason=reason)


def _person(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.PASS, rule=rule, reason=reason)
