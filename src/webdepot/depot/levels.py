"""How an institution stands by the NDSA Levels of Digital Preservation (version 2.0, 2019), as far as the
program can see it.

https://ndsa.org/publications/levels-of-digital-preservation/. Each level needs those below it. What only
people can answer (whether two places would drown in the same flood, whether somebody reads the logs) is not
claimed: the reason says what is missing or unseen.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What can be seen."""

    packages: int
    places: int
    """That have every package whole."""
    remote_places: int
    """Of these, on other machines."""
    scans_viruses: bool
    overdue: bool
    """Some copy was not read within the interval."""
    broken: int
    """Copies that are damaged or lost."""
    identified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    area: str
    level: int
    reason: str
    """Code of the sentence that says what the next level needs."""
    numbers: dict[str, int]


def of(facts: Facts) -> list[Level]:
    return list(_levels(facts))


def _levels(facts: Facts) -> Iterator[Level]:
    yield _storage(facts)
    yield _integrity(facts)
    yield Level(area="control", level=3, reason="control-review", numbers={})
    yield Level(
        area="metadata",
        level=4 if facts.places >= 2 else 0,
        reason="top" if facts.places >= 2 else "metadata-backup",
        numbers={},
    )
    yield _content(facts)


def _storage(facts: Facts) -> Level:
    numbers = {"places": facts.places}
    if facts.places < 2:
        return Level(area="storage", level=0, reason="storage-two", numbers=numbers)
    if facts.places < 3 or not facts.remote_places:
        return Level(area="storage", level=1, reason="storage-three", numbers=numbers)
    return Level(area="storage", level=2, reason="storage-threats", numbers=numbers)


def _integrity(facts: Facts) -> Level:
    if not facts.scans_viruses:
        return Level(area="integrity", level=0, reason="integrity-viruses", numbers={})
    if facts.places < 2:
        return Level(area="integrity", level=1, reason="integrity-separate", numbers={})
    if facts.overdue:
        return Level(area="integrity", level=2, reason="integrity-interval", numbers={})
    if facts.broken:
        return Level(area="integrity", level=3, reason="integrity-repair", numbers={"broken": facts.broken})
    return Level(area="integrity", level=4, reason="top", numbers={})


def _content(facts: Facts) -> Level:
    if not facts.identified:
        return Level(area="content", level=0, reason="content-identify", numbers={})
    return Level(area="content", level=2, reason="content-watch", numbers={})
