"""The verdict on a harvest: good enough to keep as it is, or not, with the reasons that decided it."""

from collections.abc import Mapping
from dataclasses import dataclass

from webdepot.model import Answer, Verdict
from webdepot.reasons import Reason, said, together

_PARTS = (
    "part-never-tried",
    "part-robots",
    "part-out-of-scope",
    "part-over-limit",
    "part-error",
    "part-unreachable",
)
_LINKS = ("link-broken", "link-server-error", "link-unreachable")
FALSE_PAGES = ("soft-missing", "page-login", "page-riddle")
_DIFFERS = ("count-differs", "size-differs", "types-differ")
_FATAL = ("nothing-harvested",)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLimits:
    """Limits up to which a harvest is accepted without a person. Shares are of the harvested documents."""

    missing_parts: float = 0.05
    broken_links: float = 0.10
    truncated: float = 0.01
    false_pages: float = 0.05
    """Error pages, sign-in forms and CAPTCHAs returned instead of content."""
    differs: bool = True
    """Whether a person must decide if size, number of documents or mix of types is unusual."""
    failed_seeds: int = 0
    queue_may_be_left: bool = False


def of(
    finding_counts: Mapping[str, int],
    counts: Mapping[str, int],
    *,
    limits: VerdictLimits = VerdictLimits(),  # noqa: B008 - frozen
) -> Verdict:
    """The verdict on a harvest, from the number of its findings by code and from its own counts (`fetched`
    documents, `captures` of an import).

    ACCEPT if every share is within its limit; REJECT if nothing was harvested; otherwise PASS, with the
    reasons why a person must decide.
    """
    findings_by_code = {code.removeprefix("quality."): count for code, count in finding_counts.items()}
    if any(findings_by_code.get(code) for code in _FATAL):
        return Verdict(
            answer=Answer.REJECT,
            rule="nothing-harvested",
            reason=said("quality.reasons.nothing", "Nothing was harvested."),
        )
    documents = max(1, counts.get("fetched", 0), counts.get("captures", 0))
    reasons = [reason for reason in _reasons(findings_by_code, documents, limits) if reason]
    left_out = _left_out(counts)
    if empty := _share(
        "empty-pages",
        "empty",
        counts.get("empty_pages", 0),
        max(1, counts.get("pages", 0)),
        limits.false_pages,
    ):
        reasons.insert(0, empty)
    if left_out > documents:
        text = "The owner's instructions exclude {count} addresses, more than the {documents} harvested."
        reasons.insert(
            0,
            ("left-out", said("quality.reasons.excluded", text, count=left_out, documents=documents)),
        )
    if reasons:
        rule = reasons[0][0]
        return Verdict(answer=Answer.PASS, rule=rule, reason=together([reason for _, reason in reasons]))
    noted = sum(findings_by_code.get(code, 0) for code in (*_PARTS, *_LINKS, *FALSE_PAGES, "body-truncated"))
    text = (
        "{documents} documents; {noted} of their parts and links are missing or broken, "
        "which is within the limits."
    )
    within = said("quality.reasons.within", text, documents=documents, noted=noted)
    if noted:
        reason: str = within
    elif left_out:
        text = "Nothing is missing except {count} addresses that the owner's instructions exclude."
        reason = said("quality.reasons.left_out", text, count=left_out)
    else:
        reason = said("quality.reasons.whole", "Nothing is missing.")
    return Verdict(answer=Answer.ACCEPT, rule="within-limits", reason=reason)


def _left_out(counts: Mapping[str, int]) -> int:
    """Addresses that were left out because of nofollow or robots.txt."""
    return counts.get("nofollow", 0) + counts.get("robots_refused", 0)


def _reasons(
    findings_by_code: Mapping[str, int], documents: int, limits: VerdictLimits
) -> list[tuple[str, Reason] | None]:
    seeds = findings_by_code.get("seed-failed", 0) + findings_by_code.get("seed-never-tried", 0)
    waiting = findings_by_code.get("queue-left", 0) and not limits.queue_may_be_left
    return [
        ("failed-seeds", said("quality.reasons.seeds", "{count} of the seeds failed.", count=seeds))
        if seeds > limits.failed_seeds
        else None,
        ("queue-left", said("quality.reasons.queue", "The harvest ended before its queue was empty."))
        if waiting
        else None,
        _share(
            "missing-parts",
            "parts",
            sum(findings_by_code.get(code, 0) for code in _PARTS),
            documents,
            limits.missing_parts,
        ),
        _share(
            "broken-links",
            "links",
            sum(findings_by_code.get(code, 0) for code in _LINKS),
            documents,
            limits.broken_links,
        ),
        _share(
            "false-pages",
            "false",
            sum(findings_by_code.get(code, 0) for code in FALSE_PAGES),
            documents,
            limits.false_pages,
        ),
        ("digests", _counted("digests", findings_by_code["digest-differs"]))
        if findings_by_code.get("digest-differs")
        else None,
        ("differs", said("quality.reasons.differs", "The harvest differs considerably from the last ones."))
        if limits.differs and any(findings_by_code.get(code) for code in _DIFFERS)
        else None,
        _share(
            "truncated", "truncated", findings_by_code.get("body-truncated", 0), documents, limits.truncated
        ),
    ]


_WORDS = {
    "parts": ("One part of a page is missing", "{count} parts of pages are missing"),
    "links": ("One link of the site is broken", "{count} links of the site are broken"),
    "false": (
        "One page is an error page, a sign-in form or a CAPTCHA instead of content",
        "{count} pages are an error page, a sign-in form or a CAPTCHA instead of content",
    ),
    "empty": ("One page is empty without its scripts", "{count} pages are empty without their scripts"),
    "truncated": ("One response is incomplete", "{count} responses are incomplete"),
    "digests": (
        "One response does not match the checksum in its record.",
        "{count} responses do not match the checksums in their records.",
    ),
}
"""Singular and plural."""


def _share(rule: str, key: str, count: int, documents: int, limit: float) -> tuple[str, Reason] | None:
    if count <= documents * limit:
        return None
    if key == "empty" and count >= documents:
        return rule, said("quality.reasons.empty_all", "All pages are empty without their scripts.")
    unit = "pages" if key == "empty" else "documents"
    rest = f", more than {{limit}} of {{documents}} {unit}."
    return rule, _counted(key, count, rest, limit=f"{limit:.0%}", documents=documents)


def _counted(key: str, count: int, rest: str = "", **values: object) -> Reason:
    one, several = _WORDS[key]
    if count == 1:
        return said(f"quality.reasons.{key}_one", one + rest, **values)
    return said(f"quality.reasons.{key}", several + rest, count=count, **values)
