"""Targets in the database: sites that are considered for the archive. There is one target for each site,
however its address is spelled.

Different spellings have the same key: `url.key` (which ignores scheme, `www.`, case, port and order of
arguments), without the name of a start page.
"""
# A little longer than other modules: rows, filters and the list share the columns.

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, func, insert, select, update

from webdepot.errors import InputError, NotFound
from webdepot.model import Purpose, Target, TargetId, Verdict
from webdepot.reasons import Reason, cut, said, to_told
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.tables import target_seeds, targets, verdicts
from webdepot.text.search_words import fold
from webdepot.url import Url, from_typed, host_of, key

ROWS = 50
IMPORT_SCHEME = "import:"
LONGEST_NAME = 300
LONGEST_NOTE = 4000
MOST_WORDS = 8
FEW = 2000
"""Up to this many matches of a text search are sorted on their own; more are read in the order of the list.
"""
_LONGEST_WORDS_BYTES = 2000
"""PostgreSQL allows at most 2,704 bytes in an index entry."""
_START_PAGE = re.compile(r"/(?:index|default|home|welcome)\.(?:html?|php\d?|aspx?|jsp|cfm|shtml|xhtml)\Z")
_AROUND = re.compile(r"\A(?:https?://)?(?:www\d*\.)?|/\Z")
"""Parts of an address that are ignored in a search."""
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


class TargetSort(StrEnum):
    NAME = "name"
    HOST = "host"
    SINCE = "since"
    CREATED = "created"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFilter:
    """Which targets a list shows, and in which order. Empty fields do not filter."""

    state: TargetState | None = None
    words: str = ""
    collection: str = ""
    origin: Origin | None = None
    nominated_by: str = ""
    sort: TargetSort = TargetSort.NAME
    descending: bool = False
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    rows: Sequence[Dossier]
    total: int
    page: int

    @property
    def pages(self) -> int:
        return max(-(-self.total // ROWS), 1)


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
    found = connection.execute(chosen).scalar_one_or_none()
    return None if found is None else TargetId(found)


def nominate(connection: Connection, nomination: Nomination, *, now: datetime) -> tuple[Dossier, bool]:
    """The target of a nomination, and whether it is new; the first state depends on the origin."""
    seeds = nomination.seeds
    identity = _identity(seeds)
    row = connection.execute(select(targets).where(targets.c.key == identity)).mappings().one_or_none()
    if row is not None:
        return _dossier(row), False
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
    dossier = _dossier(row)
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
    return KnownTarget(dossier=_dossier(row), is_same=row["seed_key"] == wanted) if row is not None else None


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
    return _dossier(row)


def dossiers_of(connection: Connection, numbers: Sequence[int]) -> list[Dossier]:
    """Several dossiers in the given order; numbers without a target are left out."""
    dossiers: dict[int, Dossier] = {}
    for start in range(0, len(numbers), 500):
        rows = connection.execute(
            select(targets).where(targets.c.id.in_(numbers[start : start + 500]))
        ).mappings()
        dossiers |= {row["id"]: _dossier(row) for row in rows}
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


def listing(connection: Connection, wanted: TargetFilter) -> TargetPage:
    """One page of the list; filtered, sorted and counted in the database."""
    where = matching(wanted)
    total = connection.execute(select(func.count()).select_from(targets).where(*where)).scalar_one()
    if wanted.words and total <= FEW:
        where = [targets.c.id.in_(connection.execute(select(targets.c.id).where(*where)).scalars().all())]
    page = min(max(wanted.page, 1), max(-(-total // ROWS), 1))
    # First the numbers, from an index; whole rows only for those that are shown.
    first = (page - 1) * ROWS
    if first > total // 2:
        # Closer to the end: read in reverse order from there, fewer rows have to be skipped.
        count = min(ROWS, total - first)
        reverse = _sorted(
            select(targets.c.id).where(*where), replace(wanted, descending=not wanted.descending)
        )
        chosen = list(connection.execute(reverse.limit(count).offset(total - first - count)).scalars())[::-1]
    else:
        chosen = list(
            connection.execute(
                _sorted(select(targets.c.id).where(*where), wanted).limit(ROWS).offset(first)
            ).scalars()
        )
    return TargetPage(rows=dossiers_of(connection, chosen), total=total, page=page)


def past(connection: Connection, wanted: TargetFilter, last: int, limit: int) -> list[Dossier]:
    """The next targets that a filter matches, by number, after the target with the number `last`."""
    chosen = select(targets).where(*matching(wanted), targets.c.id > last)
    return [
        _dossier(row) for row in connection.execute(chosen.order_by(targets.c.id).limit(limit)).mappings()
    ]


def iter_filtered(connection: Connection, wanted: TargetFilter) -> Iterator[Dossier]:
    """All targets that a filter matches, in its order; streams."""
    rows = connection.execute(
        _sorted(select(targets).where(*matching(wanted)), wanted).execution_options(yield_per=1000)
    )
    return map(_dossier, rows.mappings())


def counts(connection: Connection) -> Mapping[TargetState, int]:
    """How many targets are in each state."""
    numbers = {
        row[0]: row[1]
        for row in connection.execute(select(targets.c.state, func.count()).group_by(targets.c.state))
    }
    return {state: numbers.get(state.value, 0) for state in TargetState}


def matching(wanted: TargetFilter) -> list[ColumnElement[bool]]:
    """The conditions of a filter."""
    where: list[ColumnElement[bool]] = []
    where.append(
        targets.c.state == wanted.state.value
        if wanted.state
        else targets.c.state != TargetState.IMPORTED.value
    )
    if wanted.collection:
        where.append(targets.c.collection == wanted.collection)
    if wanted.origin:
        where.append(targets.c.origin == wanted.origin.value)
    if wanted.nominated_by:
        where.append(targets.c.nominated_by == wanted.nominated_by)
    return where + having(wanted.words)


def having(typed: str) -> list[ColumnElement[bool]]:
    """Conditions for targets that contain each of these words in their name or in one of their addresses;
    case and accents are ignored.

    Parts of words match: a search for `museum` should also find the Klokkenmuseum. An index of prefixes would
    not help, so the text of all targets is scanned, in an index that contains little else.
    """
    terms = [_AROUND.sub("", fold(word)) for word in typed.split()[:MOST_WORDS]]
    return [targets.c.words.contains(term, autoescape=True) for term in terms if term]


def words_of(name: str, seeds: Iterable[Url]) -> str:
    """The text in which a target is searched: its name and its addresses; hosts also in their own letters
    (`müller.example`).
    """
    addresses = [_AROUND.sub("", fold(seed)) for seed in seeds]
    readable = [fold(host) for host in dict.fromkeys(map(_readable_host, seeds)) if host]
    text = " ".join(dict.fromkeys([*fold(name).split(), *readable, *addresses]))
    return text.encode(errors="replace")[:_LONGEST_WORDS_BYTES].decode(errors="ignore")


def _readable_host(url: Url) -> str:
    """A host with non-ASCII letters in readable form; empty if it has none."""
    host = host_of(url).partition(":")[0]
    try:
        return host.encode("ascii").decode("idna") if "xn--" in host else ""
    except UnicodeError:
        return ""


def _sorted(chosen: Select[Any], wanted: TargetFilter) -> Select[Any]:
    column = {
        TargetSort.NAME: targets.c.name,
        TargetSort.HOST: targets.c.host,
        TargetSort.SINCE: targets.c.state_since,
        TargetSort.CREATED: targets.c.created_at,
    }[wanted.sort]
    return (
        chosen.order_by(column.desc(), targets.c.id.desc())
        if wanted.descending
        else chosen.order_by(column, targets.c.id)
    )


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
    return _dossier(row)


def change(connection: Connection, target: TargetId, values: Mapping[str, object]) -> Dossier:
    """Change name, note, collection, purpose or strategy."""
    words = (
        {"words": words_of(str(values["name"]), get(connection, target).seeds)} if "name" in values else {}
    )
    connection.execute(update(targets).where(targets.c.id == target).values(**values, **words))
    return dossier_of(connection, target)


def restore_words(connection: Connection) -> None:
    """Rebuild the search text of targets that were stored without it, from names and addresses."""
    chosen = select(targets.c.id, targets.c.name, targets.c.seeds).where(targets.c.words == "")
    for row in connection.execute(chosen).all():
        connection.execute(
            update(targets).where(targets.c.id == row.id).values(words=words_of(row.name, row.seeds))
        )


def keep_verdict(
    connection: Connection, target: TargetId, question: str, verdict: Verdict, *, agent: str, now: datetime
) -> None:
    """Store a verdict with its author. One that repeats the last on its question is not stored again: every
    package of the target has all its verdicts, and a site is harvested thousands of times on one ground.
    """
    values = {
        "answer": verdict.answer.value,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "agent": agent,
    }
    chosen = select(verdicts).where(verdicts.c.target == target, verdicts.c.question == question)
    last = connection.execute(chosen.order_by(verdicts.c.id.desc()).limit(1)).mappings().one_or_none()
    if last is None or any(last[name] != value for name, value in values.items()):
        connection.execute(insert(verdicts).values(target=target, question=question, at=now, **values))


def iter_verdicts(connection: Connection, target: TargetId) -> Iterator[dict[str, object]]:
    """All verdicts on a target, oldest first, as plain values for its package."""
    for row in connection.execute(
        select(verdicts).where(verdicts.c.target == target).order_by(verdicts.c.id)
    ):
        yield {
            "question": row.question,
            "answer": row.answer,
            "rule": row.rule,
            **to_told(row.reason),
            "agent": row.agent,
            "at": row.at.isoformat(),
        }


def _dossier(row: RowMapping) -> Dossier:
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
