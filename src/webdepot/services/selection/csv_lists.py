"""Lists of sites as CSV: a preview that names every bad line, an import of all or nothing, and an export of
what a list shows.

    address,name,collection,purpose,strategy,note,contact_name,contact_mail,contact_language

Only `address` is needed; several addresses of one site are separated by spaces. A semicolon or a tab
separates as well as a comma. Sites that are known already, in whatever spelling, are told and left as they
are. A list is kept between preview and import, so that what is imported is what was looked at.
"""

import csv
import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.model import EVERYTHING, Purpose, TargetId
from webdepot.reasons import said
from webdepot.selection import contacts, targets
from webdepot.selection.contacts import Contact
from webdepot.selection.tables import target_lists
from webdepot.selection.targets import Dossier, Nomination, Origin, Strategy, TargetFilter
from webdepot.selection.templates import LANGUAGES
from webdepot.services.selection import targets as targets_service
from webdepot.services.selection.contacts import add_contact_in
from webdepot.sheets import lines, read_cell

MOST_ROWS = 20_000
LONGEST_BYTES = 8 << 20
KEPT_FOR = timedelta(days=1)
COLUMNS = (
    "address",
    "name",
    "collection",
    "purpose",
    "strategy",
    "note",
    "contact_name",
    "contact_mail",
    "contact_language",
)
EXPORTED = ("id", "state", "since", "reason", "origin", "nominated_by", "created", *COLUMNS)
"""An exported list can be imported again: what is not for import is passed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRow:
    """A line of the list that can be imported."""

    line: int
    nomination: Nomination
    contact: Contact | None
    known: TargetId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPreview:
    """What an import would do."""

    token: str
    rows: Sequence[ListRow]
    bad: Sequence[tuple[int, str]]
    """Line number and what is wrong with it."""

    @property
    def new(self) -> Sequence[ListRow]:
        return [row for row in self.rows if row.known is None]

    @property
    def known(self) -> Sequence[ListRow]:
        return [row for row in self.rows if row.known is not None]


def preview(
    archive: Archive, raw: bytes, *, by: str = "", origin: Origin = Origin.STAFF, keep: bool = True
) -> ListPreview:
    """Read a list and say what an import would do; nothing is entered. InputError when it is no list at all."""
    text = _decoded(raw)
    token = secrets.token_urlsafe(16) if keep else ""
    with archive.database.transaction() as connection:
        made = _read(connection, text, by=by or archive.agent, origin=origin, token=token)
        if keep:
            now = archive.clock()
            connection.execute(delete(target_lists).where(target_lists.c.at < now - KEPT_FOR))
            connection.execute(
                insert(target_lists).values(token=token, agent=(by or archive.agent)[:200], at=now, text=text)
            )
    return made


def look_at(archive: Archive, token: str, *, by: str = "", origin: Origin = Origin.STAFF) -> ListPreview:
    """The preview again; NotFound when the list is gone or somebody else's."""
    with archive.database.reading() as connection:
        return _read(
            connection,
            _kept(connection, archive, token, by),
            by=by or archive.agent,
            origin=origin,
            token=token,
        )


def import_(archive: Archive, token: str, *, by: str = "", origin: Origin = Origin.STAFF) -> ListPreview:
    """Enter every new site of a list that was looked at, or none: Conflict when a line is bad."""
    with archive.database.transaction() as connection:
        made = _read(
            connection,
            _kept(connection, archive, token, by),
            by=by or archive.agent,
            origin=origin,
            token=token,
        )
        _enter(connection, archive, made, by=by)
        connection.execute(delete(target_lists).where(target_lists.c.token == token))
    return made


def import_file(archive: Archive, raw: bytes, *, by: str = "") -> ListPreview:
    """Preview and import in one go, for the command line; all or nothing."""
    with archive.database.transaction() as connection:
        made = _read(connection, _decoded(raw), by=by or archive.agent, origin=Origin.STAFF, token="")
        _enter(connection, archive, made, by=by)
    return made


def export(archive: Archive, asked: TargetFilter) -> Iterator[str]:
    """What a list shows, as CSV, line by line."""

    def rows() -> Iterator[Mapping[str, object]]:
        with archive.database.reading() as connection:
            for dossier in targets.iter_filtered(connection, asked):
                contact = next(iter(contacts.of_target(connection, dossier.id)), None)
                yield _exported(dossier, contact)

    return lines(EXPORTED, rows())


def _exported(dossier: Dossier, contact: Contact | None) -> Mapping[str, object]:
    return {
        "id": dossier.id,
        "state": dossier.state.value,
        "since": dossier.since.isoformat(timespec="seconds"),
        "reason": dossier.reason,
        "origin": dossier.origin.value,
        "nominated_by": dossier.nominated_by,
        "created": dossier.target.created_at.isoformat(timespec="seconds"),
        "address": " ".join(dossier.target.seeds),
        "name": dossier.name,
        "collection": dossier.target.collection,
        "purpose": dossier.target.purpose.value,
        "strategy": dossier.strategy.value,
        "note": dossier.note,
        "contact_name": contact.name if contact else "",
        "contact_mail": contact.mail if contact else "",
        "contact_language": contact.language if contact else "",
    }


def _decoded(raw: bytes) -> str:
    if len(raw) > LONGEST_BYTES:
        raise InputError(
            said(
                "list_too_large",
                "The list is larger than {most} MB. Split it into parts.",
                most=LONGEST_BYTES >> 20,
            )
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            said("list_not_utf8", "Line {line} is not UTF-8. Save the list as CSV in UTF-8.", line=line)
        ) from error
    if "\0" in text:
        raise InputError(
            f"Line {text.count(chr(10), 0, text.index(chr(0))) + 1} has a zero byte: this is no CSV file."
        )
    return text


def _read(connection: Connection, text: str, *, by: str, origin: Origin, token: str) -> ListPreview:
    rows: list[ListRow] = []
    bad: list[tuple[int, str]] = []
    first_seen: dict[str, int] = {}
    for line, cells in _lines(text, bad):
        try:
            row = _row(line, cells, by=by, origin=origin)
        except InputError as error:
            bad.append((line, error.args[0]))
            continue
        keys = [targets.site_key(seed) for seed in row.nomination.seeds]
        same = next((first_seen[key] for key in keys if key in first_seen), None)
        if same is not None:
            bad.append((line, said("list_same_site", "This is the same site as in line {line}.", line=same)))
            continue
        first_seen |= dict.fromkeys(keys, line)
        rows.append(row)
    if not rows and not bad:
        raise InputError(said("list_empty", "The list has no line with an address."))
    known = targets.known_keys(connection, list(first_seen))
    told = [_told(row, known) for row in rows]
    return ListPreview(token=token, rows=told, bad=sorted(bad))


def _told(row: ListRow, known: Mapping[str, TargetId]) -> ListRow:
    found = next(
        (known[key] for seed in row.nomination.seeds if (key := targets.site_key(seed)) in known), None
    )
    return ListRow(line=row.line, nomination=row.nomination, contact=row.contact, known=found)


def _lines(text: str, bad: list[tuple[int, str]]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line numbers and cells by column; what cannot be read is added to `bad`."""
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [name.strip().lower() for name in next(reader, [])]
        if "address" not in columns:
            raise InputError(
                said(
                    "list_columns",
                    "The first line must name the columns, and one of them must be `address`. Known: {names}.",
                    names=", ".join(COLUMNS),
                )
            )
        for count, cells in enumerate(_numbered(reader)):
            if count >= MOST_ROWS:
                raise InputError(
                    said(
                        "list_too_long",
                        "The list has more than {most} lines. Split it into parts.",
                        most=MOST_ROWS,
                    )
                )
            line, values = cells
            if not any(value.strip() for value in values):
                continue
            if len(values) > len(columns):
                words = "The line has {cells} cells, but there are {columns} columns."
                bad.append((line, said("list_cells", words, cells=len(values), columns=len(columns))))
                continue
            yield line, dict(zip(columns, map(read_cell, values), strict=False))
    except csv.Error as error:
        bad.append((reader.line_num, f"It cannot be read: {error}."))


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line on which it begins: a quoted cell may go over several."""
    before = 1
    for values in reader:
        yield before + 1, values
        before = reader.line_num  # type: ignore[attr-defined]


def _row(line: int, cells: Mapping[str, str], *, by: str, origin: Origin) -> ListRow:
    def cell(name: str) -> str:
        return cells.get(name, "").strip()

    nomination = targets_service.draft(
        cell("address").split(),
        name=cell("name"),
        collection=cell("collection") or EVERYTHING,
        purpose=cell("purpose") or Purpose.HERITAGE,
        strategy=cell("strategy") or Strategy.SELECTIVE,
        origin=origin,
        by=by,
        note=cell("note"),
    )
    language = cell("contact_language").lower() or LANGUAGES[0]
    if language not in LANGUAGES:
        raise InputError(f"There are letters in {', '.join(LANGUAGES)}, not in {language[:20]!r}.")
    contact = None
    if cell("contact_mail") or cell("contact_name"):
        drafted = Contact(
            target=TargetId(0), name=cell("contact_name"), mail=cell("contact_mail"), language=language
        )
        contact = contacts.checked(drafted)
    return ListRow(line=line, nomination=nomination, contact=contact)


def _enter(connection: Connection, archive: Archive, made: ListPreview, *, by: str) -> None:
    if made.bad:
        line, words = made.bad[0]
        raise Conflict(f"Nothing was imported: {len(made.bad)} lines are bad. Line {line}: {words}")
    for row in made.new:
        dossier, _ = targets_service.enter_in(connection, archive, row.nomination, by=by)
        if row.contact is not None:
            add_contact_in(connection, archive, dossier, row.contact, by=by)


def _kept(connection: Connection, archive: Archive, token: str, by: str) -> str:
    chosen = select(target_lists.c.text).where(
        target_lists.c.token == token, target_lists.c.agent == (by or archive.agent)[:200]
    )
    found = connection.execute(chosen).scalar_one_or_none()
    if found is None:
        raise NotFound("This list is not here any more. Upload it again.")
    return str(found)
