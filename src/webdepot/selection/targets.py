"""Targets in the database: sites that are considered for the archive. There is one target for each site,
however its address is spelled.

Different spellings have the same key: `url.key` (which ignores scheme, `www.`, case, port and order of
arguments), without the name of a start page.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from webdepot.errors import InputError, NotFound
from webdepot.model import Purpose, Target, TargetId
from webdepot.reasons import Reason, cut, said
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.tables import target_seeds, targets
from webdepot.selection.target_words import words_of
from webdepot.url import Url, from_typed, host_of, key

IMPORT_SCHEME = "import:"
LONGEST_NAME = 300
LONGEST_NOTE = 4000
_START_PAGE = re.compile(r"/(?:index|default|home|welcome)\.(?:html?|php\d?|aspx?|jsp|cfm|shtml|xhtml)\Z")
_MOST_FOLDERS = 12


class Origin(StrEnum):
    """Who nominated it."""

    PUBLIC = "public"
    STAFF = "staff"
    PARTNER = "partner"


class Strategy(StrEnum):
    """The whole site at its own frequency, or many sites with hard limits."""

    SELECTIVE = "selective"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """A target with its state."""

    target: Target
    host: str
    state: TargetState
    since: datetime
    reason: str
    strategy: Strategy
    origin: Origin
    nominated_by: str
    note: str
    look_again_on: date | None

    @property
    def id(self) -> TargetId:
        return self.target.id

    @property
    def name(self) -> str:
        return self.target.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Nomination:
    """A nominated site, before it is a target."""

    seeds: tuple[Url, ...]
    name: str = ""
    collection: str
    purpose: Purpose = Purpose.HERITAGE
    strategy: Strategy = Strategy.SELECTIVE
    origin: Origin = Origin.STAFF
    by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTarget:
    """The target that an address belongs to."""

    dossier: Dossier
    is_same: bool
    """True if the address is one of its seeds, False if it is below one."""


def site_key(url: str) -> str:
    """The key of a start address; the same for `http://www.Example.org/index.html` and `example.org`."""
    site = _START_PAGE.sub("/", key(url))
    return site.rstrip("/") + "/" if site.endswith("/") else site


def register(
    connection: Connection,
    seeds: Sequence[Url],
    *,
    name: str,
    collection: str,
    purpose: Purpose,
    now: datetime,
) -> tuple[Target, bool]:
    """The target with these seeds, and whether it is new. Seeds are compared by their keys, so spelling does
    not matter.
    """
    dossier, is_new = nominate(
        connection, Nomination(seeds=tuple(seeds), name=name, collection=collection, purpose=purpose), now=now
    )
    return dossier.target, is_new


def find_by_seeds(connection: Connection, seeds: Sequence[Url]) -> TargetId | None:
    """The target with exactly these seeds, in any spelling."""
    chosen = select(targets.c.id).where(targets.c.key == _identity(seeds))
    number = connection.execute(chosen).scalar_one_or_none()
    return None if number is None else TargetId(number)


def nominate(connection: Connection, nomination: Nomination, *, now: datetime) -> tuple[Dossier, bool]:
    """The target of a nomination, and whether it is new; the first state depends on the origin."""
    seeds = nomination.seeds
    identity = _identity(seeds)
    row = connection.execute(select(targets).where(targets.c.key == identity)).mappings().one_or_none()
    if row is not None:
        return to_dossier(row), False
    act = "suggest" if nomination.origin is Origin.PUBLIC else "nominate"
    act = "import" if seeds[0].startswith(IMPORT_SCHEME) else act
    host = host_of(seeds[0])[:255]
    values = {
        "key": identity,
        "name": (nomination.name or host)[:LONGEST_NAME],
        "seeds": list(seeds),
        "collection": nomination.collection,
        "purpose": nomination.purpose.value,
        "created_at": now,
        "host": re.sub(r"\Awww\d*\.", "", host),
        "state": TARGET.after(None, act, host).value,
        "state_since": now,
        "strategy": nomination.strategy.value,
        "origin": nomination.origin.value,
        "nominated_by": nomination.by[:200],
        "note": nomination.note[:LONGEST_NOTE],
    }
    values["words"] = words_of(str(values["name"]), seeds)
    row = connection.execute(insert(targets).values(**values).returning(targets)).mappings().one()
    dossier = to_dossier(row)
    _store_seeds(connection, dossier.id, seeds)
    return dossier, True


def _identity(seeds: Sequence[Url]) -> str:
    return json.dumps(sorted({key(seed) for seed in seeds}))[:2000]


def _store_seeds(connection: Connection, target: TargetId, seeds: Iterable[Url]) -> None:
    rows = {site_key(seed)[:2000]: seed for seed in seeds}
    connection.execute(
        insert(target_seeds),
        [{"target": target, "key": seed_key, "url": url} for seed_key, url in rows.items()],
    )


def find_known(connection: Connection, url: Url) -> KnownTarget | None:
    """The target with this address as a seed, in any spelling, or with a seed above it; the closest one."""
    wanted = site_key(url)
    above = _folders_above(wanted)
    chosen = (
        select(targets, target_seeds.c.key.label("seed_key"))
        .join(target_seeds, target_seeds.c.target == targets.c.id)
        .where(target_seeds.c.key.in_([wanted, *above]))
        .order_by(func.length(target_seeds.c.key).desc(), targets.c.id)
        .limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return (
        KnownTarget(dossier=to_dossier(row), is_same=row["seed_key"] == wanted) if row is not None else None
    )


def known_keys(connection: Connection, keys: Sequence[str]) -> dict[str, TargetId]:
    """Those of these site keys that are already seeds, with their targets."""
    known: dict[str, TargetId] = {}
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        rows = connection.execute(
            select(target_seeds.c.key, target_seeds.c.target).where(target_seeds.c.key.in_(part))
        )
        known |= {row.key: TargetId(row.target) for row in rows}
    return known


def _folders_above(wanted: str) -> list[str]:
    """Keys of the folders above an address, nearest first: `a)/b/c` -> `a)/b/`, `a)/`."""
    host, mark, path = wanted.partition(")")
    if not mark:
        return []
    parts = path.partition("?")[0].strip("/").split("/")
    folders = ["/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)][:_MOST_FOLDERS]
    keys = [spelling for folder in folders for spelling in (f"{host})/{folder}/", f"{host})/{folder}")]
    return [each for each in [*keys, f"{host})/"] if each != wanted]


def get(connection: Connection, target: TargetId) -> Target:
    return dossier_of(connection, target).target


def dossier_of(connection: Connection, target: int) -> Dossier:
    row = connection.execute(select(targets).where(targets.c.id == target)).mappings().one_or_none()
    if row is None:
        raise NotFound(
            said(
                "missing_target",
                "There is no target {target}. List them: webdepot target list",
                target=target,
            )
        )
    return to_dossier(row)


def dossiers_of(connection: Connection, numbers: Sequence[int]) -> list[Dossier]:
    """Several dossiers in the given order; numbers without a target are left out."""
    dossiers: dict[int, Dossier] = {}
    for start in range(0, len(numbers), 500):
        rows = connection.execute(
            select(targets).where(targets.c.id.in_(numbers[start : start + 500]))
        ).mappings()
        dossiers |= {row["id"]: to_dossier(row) for row in rows}
    return [dossiers[number] for number in numbers if number in dossiers]


def find_named(connection: Connection, text: str) -> Target | None:
    """The target with this number, name or seed."""
    if text.isascii() and text.isdigit() and len(text) <= 9:
        chosen = select(targets).where(targets.c.id == int(text))
    else:
        chosen = select(targets).where(targets.c.name == text).order_by(targets.c.id.desc())
    row = connection.execute(chosen.limit(1)).mappings().one_or_none()
    if row is None and "." in text:
        try:
            known = find_known(connection, from_typed(text))
        except InputError:
            return None
        return known.dossier.target if known and known.is_same else None
    return _target(row) if row is not None else None


def named(dossier: Dossier) -> Reason:
    """Number and name of a target, for messages."""
    return said("target_named", "Target {number} ({name})", number=str(dossier.id), name=dossier.name)


def move(
    connection: Connection,
    dossier: Dossier,
    act: str,
    *,
    reason: str,
    now: datetime,
    look_again_on: date | None = None,
) -> Dossier:
    """Take one step; Conflict if `TARGET` does not allow it. If another person has changed the state in the
    meantime, the step is tried from the new state.
    """
    after = TARGET.after(dossier.state, act, named(dossier))
    values = {
        "state": after.value,
        "state_since": now,
        "state_reason": cut(reason, LONGEST_NOTE),
        "look_again_on": look_again_on.isoformat() if look_again_on else "",
    }
    moved = connection.execute(
        update(targets)
        .where(targets.c.id == dossier.id, targets.c.state == dossier.state.value)
        .values(**values)
        .returning(targets)
    )
    row = moved.mappings().one_or_none()
    if row is None:
        return move(
            connection,
            dossier_of(connection, dossier.id),
            act,
            reason=reason,
            now=now,
            look_again_on=look_again_on,
        )
    return to_dossier(row)


def change(connection: Connection, target: TargetId, values: Mapping[str, object]) -> Dossier:
    """Change name, note, collection, purpose or strategy."""
    searched = (
        {"words": words_of(str(values["name"]), get(connection, target).seeds)} if "name" in values else {}
    )
    connection.execute(update(targets).where(targets.c.id == target).values(**values, **searched))
    return dossier_of(connection, target)


def to_dossier(row: RowMapping) -> Dossier:
    return Dossier(
        target=_target(row),
        host=row["host"],
        state=TargetState(row["state"]),
        since=row["state_since"],
        reason=row["state_reason"],
        strategy=Strategy(row["strategy"]),
        origin=Origin(row["origin"]),
        nominated_by=row["nominated_by"],
        note=row["note"],
        look_again_on=date.fromisoformat(row["look_again_on"]) if row["look_again_on"] else None,
    )


def _target(row: RowMapping) -> Target:
    return Target(
        id=TargetId(row["id"]),
        name=row["name"],
        seeds=tuple(map(Url, row["seeds"])),
        collection=row["collection"],
        purpose=Purpose(row["purpose"]),
        created_at=row["created_at"],
    )
