"""The NDSA Levels of Digital Preservation (version 2.0, 2019) that an institution reaches, as far as the
program can determine them.

https://ndsa.org/publications/levels-of-digital-preservation/. Each level requires those below it. What only
people can answer (whether one flood could destroy two places, whether anyone reads the logs) is not assumed:
the reason says what the next level needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotFacts:
    """What the program knows about the depot."""

    packages: int
    places: int
    """Places that have a complete copy of every package."""
    remote_places: int
    """Those of them on other machines."""
    scans_viruses: bool
    overdue: bool
    """Whether some copy was not checked within the interval."""
    broken: int
    """Copies that are damaged or lost."""
    identified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NdsaLevel:
    area: str
    level: int
    reason: str
    """Code of the text that says what the next level needs."""
    numbers: dict[str, int]


def of(facts: DepotFacts) -> list[NdsaLevel]:
    return list(_levels(facts))


def _levels(facts: DepotFacts) -> Iterator[NdsaLevel]:
    yield _storage(facts)
    yield _integrity(facts)
    yield NdsaLevel(area="control", level=3, reason="control-review", numbers={})
    yield NdsaLevel(
        area="metadata",
        level=4 if facts.places >= 2 else 0,
        reason="top" if facts.places >= 2 else "metadata-backup",
        numbers={},
    )
    yield _content(facts)


def _storage(facts: DepotFacts) -> NdsaLevel:
    numbers = {"places": facts.places}
    if facts.places < 2:
        return NdsaLevel(area="storage", level=0, reason="storage-two", numbers=numbers)
    if facts.places < 3 or not facts.remote_places:
        return NdsaLevel(area="storage", level=1, reason="storage-three", numbers=numbers)
    return NdsaLevel(area="storage", level=2, reason="storage-threats", numbers=numbers)


def _integrity(facts: DepotFacts) -> NdsaLevel:
    if not facts.scans_viruses:
        return NdsaLevel(area="integrity", level=0, reason="integrity-viruses", numbers={})
    if facts.places < 2:
        return NdsaLevel(area="integrity", level=1, reason="integrity-separate", numbers={})
    if facts.overdue:
        return NdsaLevel(area="integrity", level=2, reason="integrity-interval", numbers={})
    if facts.broken:
        return NdsaLevel(
            area="integrity", level=3, reason="integrity-repair", numbers={"broken": facts.broken}
        )
    return NdsaLevel(area="integrity", level=4, reason="top", numbers={})


def _content(facts: DepotFacts) -> NdsaLevel:
    if not facts.identified:
        return NdsaLevel(area="content", level=0, reason="content-identify", numbers={})
    return NdsaLevel(area="content", level=2, reason="content-watch", numbers={})
