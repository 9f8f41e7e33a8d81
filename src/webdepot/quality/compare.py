"""A harvest in figures beside the last ones of its target: far smaller, larger, quicker or slower, or of
other types, is worth a look.

The median of the last harvests is the measure, so that one odd harvest does not spoil it. Pure functions of
their arguments.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from webdepot.model import Finding
from webdepot.quality.texts import finding

FACTOR = 2.0
"""So many times more or less than the median is told."""
TYPES_SHARE = 0.25
"""When so large a share of the documents is of other types than usual, it is told."""
FEWEST_DOCUMENTS = 10
SHORTEST_S = 60.0
"""Below these, chance rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    documents: int
    size_bytes: int
    duration_s: float
    types: Mapping[str, int]
    """Documents by media type."""


def against(now: Profile, earlier: Sequence[Profile], *, subject: str) -> Iterator[Finding]:
    """What differs from the median of the earlier harvests; nothing without any."""
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
        change = f"{now / usual:.1f} times the usual" if usual else "there was nothing before"
        yield finding(
            code,
            subject=subject,
            place=f"{count} earlier harvests",
            now=f"{now:,.0f}",
            usual=f"{usual:,.0f}",
            detail=change,
        )


def _types(now: Profile, earlier: Sequence[Profile], subject: str) -> Iterator[Finding]:
    """Half the sum of differences between two shares is the share that would have to change to make them
    alike.
    """
    # Types are known of what was stored anew. Where most of a site came unchanged, the few new files tell
    # nothing about the mix.
    if any(sum(each.types.values()) * 2 < each.documents for each in (now, *earlier)):
        return
    names = set(now.types).union(*(each.types for each in earlier))
    usual = {name: median(_share(each, name) for each in earlier) for name in names}
    differences = {name: _share(now, name) - usual[name] for name in names}
    if sum(map(abs, differences.values())) / 2 > TYPES_SHARE:
        most = sorted(differences.items(), key=lambda each: -abs(each[1]))[:3]
        words = ", ".join(
            f"{name or 'unknown'} {usual[name]:.0%} → {_share(now, name):.0%}" for name, _ in most
        )
        yield finding("types-differ", subject=subject, place=f"{len(earlier)} earlier harvests", detail=words)


def _share(profile: Profile, name: str) -> float:
    total = sum(profile.types.values())
    return profile.types.get(name, 0) / total if total else 0.0
