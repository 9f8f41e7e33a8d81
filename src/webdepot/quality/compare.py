"""Compare the figures of a harvest with the last harvests of its target. A finding is made if it is much
smaller, larger, faster or slower, or has a different mix of types.

It is compared with the median of the last harvests, so that one unusual harvest does not distort the result.
Pure functions of their arguments.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from webdepot.model import Finding
from webdepot.quality.texts import finding
from webdepot.reasons import Reason, said

FACTOR = 2.0
"""A figure more than this many times larger or smaller than the median gives a finding."""
TYPES_SHARE = 0.25
"""A larger share of documents of unusual types gives a finding."""
FEWEST_DOCUMENTS = 10
SHORTEST_S = 60.0
"""Smaller and shorter harvests are not compared: their figures vary by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestMeasures:
    documents: int
    size_bytes: int
    duration_s: float
    types: Mapping[str, int]
    """Documents by media type."""


def against(now: HarvestMeasures, earlier: Sequence[HarvestMeasures], *, subject: str) -> Iterator[Finding]:
    """Findings about what differs from the median of the earlier harvests; none without earlier ones."""
    if not earlier:
        return
    usual = median(each.documents for each in earlier)
    if max(now.documents, usual) >= FEWEST_DOCUMENTS:
        yield from _compared("count-differs", subject, now.documents, usual, len(earlier))
        yield from _compared(
            "size-differs", subject, now.size_bytes, median(each.size_bytes for each in earlier), len(earlier)
        )
        yield from _types(now, earlier, subject)
    usual_s = median(each.duration_s for each in earlier)
    if max(now.duration_s, usual_s) >= SHORTEST_S:
        yield from _compared("duration-differs", subject, now.duration_s, usual_s, len(earlier))


def _compared(code: str, subject: str, now: float, usual: float, count: int) -> Iterator[Finding]:
    if now > usual * FACTOR or now * FACTOR < usual:
        yield finding(
            code, subject=subject, now=round(now), usual=round(usual), detail=_change(now, usual, count)
        )


def _change(now: float, usual: float, count: int) -> Reason:
    """How many times the usual it is; `count` is the number of harvests compared."""
    if not usual:
        return said(
            "quality.details.nothing_before",
            "there was nothing before; harvests compared: {count}",
            count=count,
        )
    factor = round(now / usual, 1)
    if not factor:
        return said("quality.details.fraction", "less than a tenth; harvests compared: {count}", count=count)
    return said(
        "quality.details.times",
        "{factor} times the usual; harvests compared: {count}",
        factor=factor,
        count=count,
    )


def _types(now: HarvestMeasures, earlier: Sequence[HarvestMeasures], subject: str) -> Iterator[Finding]:
    """A finding if the mix of types differs. Half the sum of the differences between the shares is the share
    of documents that would have to be of another type to make the mixes equal.
    """
    # Types are known only for files that were stored. If most of a site was unchanged, the few new files say
    # nothing about the mix.
    if any(sum(each.types.values()) * 2 < each.documents for each in (now, *earlier)):
        return
    names = set(now.types).union(*(each.types for each in earlier))
    usual = {name: median(_share(each, name) for each in earlier) for name in names}
    differences = {name: _share(now, name) - usual[name] for name in names}
    if sum(map(abs, differences.values())) / 2 > TYPES_SHARE:
        most = sorted(differences.items(), key=lambda each: (-abs(each[1]), each[0]))[:3]
        shares = [
            said(
                "quality.details.share",
                "{type} {usual}% → {now}%",
                type=name or said("quality.details.unknown", "unknown"),
                usual=round(100 * usual[name]),
                now=round(100 * _share(now, name)),
            )
            for name, _ in most
        ]
        detail = Reason(", ".join(shares), "quality.details.shares", {"shares": shares})
        yield finding("types-differ", subject=subject, detail=detail)


def _share(measures: HarvestMeasures, name: str) -> float:
    total = sum(measures.types.values())
    return measures.types.get(name, 0) / total if total else 0.0
