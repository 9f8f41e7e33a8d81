"""Statistics of formats: the table of one harvest, and the share of each format in bytes and in addresses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select

from webdepot.formats.survey_rows import Row, SurveyCounts
from webdepot.formats.tables import format_counts, surveys
from webdepot.model import FormatVerdict, HarvestId

WantedHarvests = Sequence[HarvestId] | Select[Any] | None
"""Ids of harvests, a query for them (they may be very many), or None for all harvests."""
_SUMS = ("uris", "size_bytes", "not_valid", "warnings")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestTable:
    """Files checked, how fast, and how many were recognised."""

    files: int
    checked: int
    distinct: int
    size_bytes: int
    duration_s: float
    recognised: int
    uncertain: int
    not_recognised: int

    @property
    def checked_share(self) -> float:
        return _share(self.checked, self.files)

    @property
    def files_per_s(self) -> float:
        return self.checked / self.duration_s if self.duration_s else 0.0

    def share(self, verdict: FormatVerdict) -> float:
        counts = {
            FormatVerdict.RECOGNISED: self.recognised,
            FormatVerdict.UNCERTAIN: self.uncertain,
            FormatVerdict.NOT_RECOGNISED: self.not_recognised,
        }
        return _share(counts[verdict], self.checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatShare:
    """One format in a harvest or collection. Shares are between 0 and 1."""

    puid: str
    name: str
    version: str
    mime: str
    uris: int
    size_bytes: int
    uri_share: float
    byte_share: float
    not_valid: int
    warnings: int


def of_counts(counts: SurveyCounts) -> HarvestTable:
    """The table of one survey that is not in a database."""
    return HarvestTable(
        files=counts.files,
        checked=counts.checked,
        distinct=counts.distinct,
        size_bytes=counts.size_bytes,
        duration_s=counts.duration_s,
        recognised=counts.recognised,
        uncertain=counts.uncertain,
        not_recognised=counts.not_recognised,
    )


def shares_of_rows(rows: Iterable[Row]) -> list[FormatShare]:
    """The formats in the rows of a survey, largest share of bytes first."""
    tallies: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        new = {
            "puid": row["puid"],
            "name": row["name"],
            "version": row["version"],
            "mime": row["mime"],
            **dict.fromkeys(_SUMS, 0),
        }
        tally = tallies.setdefault((row["puid"], row["mime"]), new)
        tally["uris"] += row["uris"]
        tally["size_bytes"] += row["uris"] * row["size_bytes"]
        tally["not_valid"] += row["uris"] if row["validity"] == "not valid" else 0
        tally["warnings"] += row["uris"] if row["warning"] else 0
    uris, size_bytes = (sum(each[name] for each in tallies.values()) for name in ("uris", "size_bytes"))
    ordered = sorted(tallies.values(), key=lambda each: (-each["size_bytes"], each["puid"], each["mime"]))
    return [
        FormatShare(
            **each, uri_share=_share(each["uris"], uris), byte_share=_share(each["size_bytes"], size_bytes)
        )
        for each in ordered
    ]


def of_harvest(connection: Connection, harvest: HarvestId) -> HarvestTable:
    """Totals of the harvest's containers; all zero if none was surveyed."""
    return of_harvests(connection, [harvest])


def of_harvests(connection: Connection, harvests: WantedHarvests = None) -> HarvestTable:
    """Totals of the containers of these harvests, or of all harvests."""
    wanted = [surveys.c.harvest.in_(harvests)] if harvests is not None else []
    columns = (
        surveys.c.files,
        surveys.c.checked,
        surveys.c.distinct_files,
        surveys.c.size_bytes,
        surveys.c.duration_s,
    )
    sums = connection.execute(
        select(*(func.coalesce(func.sum(column), 0) for column in columns)).where(*wanted)
    ).one()
    verdicts = {
        row.verdict: int(row.uris)
        for row in connection.execute(
            select(format_counts.c.verdict, func.sum(format_counts.c.uris).label("uris"))
            .join(surveys, surveys.c.container == format_counts.c.container)
            .where(*wanted)
            .group_by(format_counts.c.verdict)
        )
    }
    return HarvestTable(
        files=int(sums[0]),
        checked=int(sums[1]),
        distinct=int(sums[2]),
        size_bytes=int(sums[3]),
        duration_s=float(sums[4]),
        recognised=verdicts.get(FormatVerdict.RECOGNISED.value, 0),
        uncertain=verdicts.get(FormatVerdict.UNCERTAIN.value, 0),
        not_recognised=verdicts.get(FormatVerdict.NOT_RECOGNISED.value, 0),
    )


def shares(connection: Connection, harvests: WantedHarvests = None) -> list[FormatShare]:
    """The formats of these harvests, or of all harvests, largest share of bytes first."""
    rows = connection.execute(_chosen(harvests)).all()
    uris = sum(int(row.uris) for row in rows)
    size_bytes = sum(int(row.size_bytes) for row in rows)
    return [
        FormatShare(
            puid=row.puid,
            name=row.name,
            version=row.version,
            mime=row.mime,
            uris=int(row.uris),
            size_bytes=int(row.size_bytes),
            uri_share=_share(int(row.uris), uris),
            byte_share=_share(int(row.size_bytes), size_bytes),
            not_valid=int(row.not_valid),
            warnings=int(row.warnings),
        )
        for row in rows
    ]


def _chosen(harvests: WantedHarvests) -> Select[tuple[object, ...]]:
    counts = format_counts.c
    not_valid = func.coalesce(func.sum(counts.uris).filter(counts.validity == "not valid"), 0)
    chosen = select(
        counts.puid,
        counts.mime,
        func.max(counts.name).label("name"),
        func.max(counts.version).label("version"),
        func.sum(counts.uris).label("uris"),
        func.sum(counts.size_bytes).label("size_bytes"),
        func.sum(counts.warnings).label("warnings"),
        not_valid.label("not_valid"),
    ).group_by(counts.puid, counts.mime)
    if harvests is not None:
        chosen = chosen.join(surveys, surveys.c.container == counts.container).where(
            surveys.c.harvest.in_(harvests)
        )
    return chosen.order_by(func.sum(counts.size_bytes).desc(), counts.puid, counts.mime)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
