"""Lists of sites as CSV: a preview that names every bad line, an import of all lines or none, and an export
of a filtered list.

    address,name,collection,purpose,strategy,note,contact_name,contact_mail,contact_language

Only `address` is required; several addresses of one site are separated by spaces. Columns may be separated
by comma, semicolon or tab. Lists of Archive-It and the Web Curator Tool are read under their own names
(`FOREIGN`, `DESCRIPTIONS`); columns without a counterpart are reported. Sites that are already known, in any
spelling, are listed and left unchanged. A list is stored between preview and import, so that exactly what was
previewed is imported.
"""

import csv
import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.model import EVERYTHING, Purpose, TargetId
from webdepot.reasons import said
from webdepot.selection import contacts, target_list, targets
from webdepot.selection.contacts import Contact
from webdepot.selection.letter_templates import LANGUAGES
from webdepot.selection.tables import target_lists
from webdepot.selection.target_list import TargetFilter
from webdepot.selection.targets import Dossier, Nomination, Origin, Strategy
from webdepot.services.selection import targets as targets_service
from webdepot.services.selection.contacts import add_contact_in
from webdepot.text.csv_text import lines, read_cell

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
FOREIGN = {
    "url": "address",
    "seed": "address",
    "seeds": "address",
    "seed url": "address",
    "primary seed": "address",
    "target name": "name",
    "collection name": "collection",
}
"""Columns of Archive-It (seeds, seed metadata) and of the Web Curator Tool (targets) -> ours."""
DESCRIPTIONS = {
    "title": "title",
    "creator": "creators",
    "contributor": "contributors",
    "publisher": "publisher",
    "subject": "keywords",
    "description": "abstract",
    "language": "languages",
    "rights": "rights",
}
"""Columns of Dublin Core, which can be repeated -> fields of the catalogue record."""
EXPORTED = ("id", "state", "since", "reason", "origin", "nominated_by", "created", *COLUMNS)
"""An exported list can be imported again: the additional columns are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRow:
    """A line of the list that can be imported."""

    line: int
    nomination: Nomination
    contact: Contact | None
    known: TargetId | None = None
    description: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values for the catalogue record, by field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPreview:
    """What an import would do."""

    token: str
    rows: Sequence[ListRow]
    bad: Sequence[tuple[int, str]]
    """Line number and what is wrong with it."""
    ignored: Sequence[str] = ()
    """Columns without a counterpart."""

    @property
    def new(self) -> Sequence[ListRow]:
        return [row for row in self.rows if row.known is None]

    @property
    def known(self) -> Sequence[ListRow]:
        return [row for row in self.rows if row.known is not None]


def preview(
    archive: Archive, raw: bytes, *, by: str = "", origin: Origin = Origin.STAFF, keep: bool = True
) -> ListPreview:
    """Read a list and report what an import would do; nothing is imported. InputError if it is not a list."""
    text = _decoded(raw)
    token = secrets.token_urlsafe(16) if keep else ""
    with archive.database.transaction() as connection:
        read = _read(connection, text, by=by or archive.agent, origin=origin, token=token)
        if keep:
            now = archive.clock()
            connection.execute(delete(target_lists).where(target_lists.c.at < now - KEPT_FOR))
            connection.execute(
                insert(target_lists).values(token=token, agent=(by or archive.agent)[:200], at=now, text=text)
            )
    return read


def get_preview(archive: Archive, token: str, *, by: str = "", origin: Origin = Origin.STAFF) -> ListPreview:
    """The preview of a stored list; NotFound if it has expired or belongs to another person."""
    with archive.database.reading() as connection:
        return _read(
            connection,
            _stored_text(connection, archive, token, by),
            by=by or archive.agent,
            origin=origin,
            token=token,
        )


def import_(archive: Archive, token: str, *, by: str = "", origin: Origin = Origin.STAFF) -> ListPreview:
    """Import every new site of a previewed list, or none: Conflict if a line is bad."""
    with archive.database.transaction() as connection:
        read = _read(
            connection,
            _stored_text(connection, archive, token, by),
            by=by or archive.agent,
            origin=origin,
            token=token,
        )
        _enter(connection, archive, read, by=by)
        connection.execute(delete(target_lists).where(target_lists.c.token == token))
    return read


def import_file(archive: Archive, raw: bytes, *, by: str = "") -> ListPreview:
    """Preview and import in one step, for the command line; all lines or none."""
    with archive.database.transaction() as connection:
        read = _read(connection, _decoded(raw), by=by or archive.agent, origin=Origin.STAFF, token="")
        _enter(connection, archive, read, by=by)
    return read


def export(archive: Archive, wanted: TargetFilter) -> Iterator[str]:
    """The targets that a filter matches, as CSV, line by line."""

    def rows() -> Iterator[Mapping[str, object]]:
        with archive.database.reading() as connection:
            for dossier in target_list.iter_filtered(connection, wanted):
                contact = next(iter(contacts.of_target(connection, dossier.id)), None)
                yield _export_row(dossier, contact)

    return lines(EXPORTED, rows())


def _export_row(dossier: Dossier, contact: Contact | None) -> Mapping[str, object]:
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
            f"Line {text.count(chr(10), 0, text.index(chr(0))) + 1} contains a zero byte: "
            "this is not a CSV file."
        )
    return text


def _read(connection: Connection, text: str, *, by: str, origin: Origin, token: str) -> ListPreview:
    rows: list[ListRow] = []
    bad: list[tuple[int, str]] = []
    ignored: list[str] = []
    first_seen: dict[str, int] = {}
    for line, cells in _lines(text, bad, ignored):
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
    listed = [_with_known(row, known) for row in rows]
    return ListPreview(token=token, rows=listed, bad=sorted(bad), ignored=ignored)


def _with_known(row: ListRow, known: Mapping[str, TargetId]) -> ListRow:
    keys = (targets.site_key(seed) for seed in row.nomination.seeds)
    return replace(row, known=next((known[key] for key in keys if key in known), None))


def _lines(
    text: str, bad: list[tuple[int, str]], ignored: list[str]
) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Line numbers and the cells of each column; lines that cannot be read are added to `bad`, columns
    without a counterpart to `ignored`.
    """
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        stated = [name.strip() for name in next(reader, [])]
        columns = [FOREIGN.get(name.lower(), name.lower()) for name in stated]
        known = {*EXPORTED, *DESCRIPTIONS, ""}
        ignored += [name[:60] for name, column in zip(stated, columns, strict=True) if column not in known]
        if "address" not in columns:
            raise InputError(
                said(
                    "list_columns",
                    "The first line must name the columns, and one of them must be `address`. "
                    "Known: {names}.",
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
                text = "The line has {cells} cells, but there are {columns} columns."
                bad.append((line, said("list_cells", text, cells=len(values), columns=len(columns))))
                continue
            by_column: dict[str, list[str]] = {}
            for column, value in zip(columns, map(read_cell, values), strict=False):
                by_column.setdefault(column, []).append(value.strip())
            yield line, by_column
    except csv.Error as error:
        bad.append((reader.line_num, f"The line cannot be read: {error}."))


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line: a quoted cell may span several lines."""
    before = 1
    for values in reader:
        yield before + 1, values
        before = reader.line_num  # type: ignore[attr-defined]


def _row(line: int, cells: Mapping[str, Sequence[str]], *, by: str, origin: Origin) -> ListRow:
    def cell(name: str) -> str:
        return " ".join(value for value in cells.get(name, ()) if value)

    description = {
        target: values
        for column, target in DESCRIPTIONS.items()
        if (values := [value for value in cells.get(column, ()) if value])
    }
    nomination = targets_service.draft(
        cell("address").split(),
        name=cell("name") or cell("title"),
        collection=cell("collection") or EVERYTHING,
        purpose=cell("purpose") or Purpose.HERITAGE,
        strategy=cell("strategy") or Strategy.SELECTIVE,
        origin=origin,
        by=by,
        note=cell("note"),
    )
    language = cell("contact_language").lower() or LANGUAGES[0]
    if language not in LANGUAGES:
        raise InputError(f"There are no letters in {language[:20]!r}. Use one of {', '.join(LANGUAGES)}.")
    contact = None
    if cell("contact_mail") or cell("contact_name"):
        contact = contacts.checked(
            Contact(
                target=TargetId(0), name=cell("contact_name"), mail=cell("contact_mail"), language=language
            )
        )
    return ListRow(line=line, nomination=nomination, contact=contact, description=description)


def _enter(connection: Connection, archive: Archive, read: ListPreview, *, by: str) -> None:
    if read.bad:
        line, problem = read.bad[0]
        raise Conflict(f"Nothing was imported: {len(read.bad)} lines are bad. Line {line}: {problem}")
    for row in read.new:
        dossier, _ = targets_service.enter_in(connection, archive, row.nomination, by=by)
        if row.contact is not None:
            add_contact_in(connection, archive, dossier, row.contact, by=by)


def _stored_text(connection: Connection, archive: Archive, token: str, by: str) -> str:
    chosen = select(target_lists.c.text).where(
        target_lists.c.token == token, target_lists.c.agent == (by or archive.agent)[:200]
    )
    text = connection.execute(chosen).scalar_one_or_none()
    if text is None:
        raise NotFound(said("missing_list", "This list is no longer stored. Upload it again."))
    return str(text)
