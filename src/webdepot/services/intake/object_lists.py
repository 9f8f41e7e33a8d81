"""Lists of objects in a CSV file: each line is one object, with its files and its description.

    filename,title,creator,date,type,journal,issn,volume,issue
    a/thesis.pdf,Pendulum clocks,"Huygens, Christiaan",2004,doctoralThesis,,,,
    12-3/cheeks.pdf|12-3/data,On cheeks,"Huygens, Christiaan",2004,article,Horology,1234-5679,12,3

`filename` names files and folders relative to the list. Columns are the elements of Dublin Core, also as
`dc.title`, and `journal`, `issn`, `volume`, `issue` of articles. Several values are separated by `|` or are
in columns of the same name. The whole list is checked before the first object is taken in; then each line is
a submission by itself, so that an interrupted import of a list can be repeated.

A ZIP or tar file and an upload may contain the list beside its files; then it must list all of them.
"""

import csv
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TextIO

from webdepot.config.sections.storage import MOST_MEMBERS
from webdepot.depot.store.keys import is_key
from webdepot.errors import InputError
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import descriptions, dublin_core
from webdepot.exchange.metadata.dublin_core import DublinCore
from webdepot.exchange.metadata.regbib import DeliveredLevel
from webdepot.text import csv_text

LONGEST_BYTES = 64 << 20
MOST_LINES = MOST_MEMBERS
MOST_VALUES = 20 * MOST_LINES
MOST_FILES = 10 * MOST_MEMBERS
"""Of all objects; one that is in several of them is counted each time."""
_LONGEST_LINE = 1 << 20
ROW_FILE = "object.csv"
"""The line of the list, with its header, as it is kept with the package."""
_FILES = ("filename", "filenames", "file", "files", "path")
_HOST = ("journal", "issn", "volume", "issue")
_ELEMENTS = tuple(each.name for each in fields(DublinCore))
_MOST_REASONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    line: int
    name: str
    files: Mapping[str, Path]
    """Path in the object to the file."""
    levels: tuple[DeliveredLevel, ...]
    header: list[str]
    row: list[str]

    @property
    def text(self) -> str:
        """Its line as CSV, with the header."""
        return "".join(csv_text.written([self.header, self.row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFolder:
    """What a folder contains that a line names. Walked once, however many lines name it."""

    files: tuple[Path, ...]
    has_links: bool


def is_list(path: Path) -> bool:
    """Whether a file is a list of objects: CSV with columns for files and titles."""
    if not path.name.lower().endswith(".csv") or not path.is_file():
        return False
    with path.open("rb") as stream:
        first = stream.readline(65_536).decode("utf-8-sig", errors="replace")
    try:
        names = _columns(next(csv.reader([first]), []))
    except csv.Error:
        return False
    return "title" in names and any(name in _FILES for name in names)


def find_in(folder: Path) -> Path | None:
    """The list at the top of a folder that names files of this folder; None if there is none, or several.
    A folder around everything is passed over.
    """
    entries = list(folder.iterdir())
    if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink():
        return find_in(entries[0])
    lists = [path for path in sorted(folder.iterdir()) if is_list(path)]
    if len(lists) != 1:
        return None
    try:
        named = list(_named(lists[0]))
    except InputError:
        return lists[0]
    return lists[0] if any(is_key(name) and (folder / name).exists() for name in named) else None


def read_whole(path: Path) -> list[ListedObject]:
    """As `read`; InputError too if the folder of the list has files that it does not list."""
    objects = read(path)
    listed = {file for each in objects for file in each.files.values()} | {path}
    others = sorted(set(filter(Path.is_file, path.parent.rglob("*"))) - listed)
    if others:
        names = ", ".join(str(each.relative_to(path.parent)) for each in others[:_MOST_REASONS])
        raise InputError(
            f"{path.name} does not list {names[:2000]}. Add a line, or leave the file out. "
            "To import everything as one object, leave out the list or send a bag."
        )
    return objects


def read(path: Path) -> list[ListedObject]:
    """All objects of a list; InputError with all reasons if a line is wrong."""
    rows = _rows(path)
    header = _columns(rows[0]) if rows else []
    objects: list[ListedObject] = []
    reasons: list[str] = []
    folders: dict[Path, ListedFolder] = {}
    count = 0
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        problems = list(_check(path.parent, header, row, folders))
        reasons += [f"{path.name}, line {line}: {problem}" for problem in problems]
        if not problems:
            objects.append(_object(path, rows[0], header, row, line, folders))
            count += len(objects[-1].files)
            if count > MOST_FILES:
                raise InputError(f"The objects of {path.name} have more than {MOST_FILES:,} files. Split it.")
    if reasons:
        more = f" and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
        raise InputError("; ".join(reasons[:_MOST_REASONS]) + more)
    if not objects:
        raise InputError(f"{path.name} lists no objects.")
    return objects


def _rows(path: Path) -> list[list[str]]:
    """The lines of a list. A few megabytes of CSV can be gigabytes of values."""
    if path.stat().st_size > LONGEST_BYTES:
        raise InputError(f"{path.name} is larger than {LONGEST_BYTES >> 20} MB. Split it.")
    rows: list[list[str]] = []
    count = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.reader(_iter_lines(stream), strict=True):
                rows.append(row)
                count += len(row)
                if len(rows) > MOST_LINES or count > MOST_VALUES:
                    raise InputError(
                        f"{path.name} has more than {MOST_LINES:,} lines or {MOST_VALUES:,} values. Split it."
                    )
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path.name} is not CSV in UTF-8: {error}") from error
    return rows


def _iter_lines(stream: TextIO) -> Iterator[str]:
    while line := stream.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise csv.Error(f"a line has more than {_LONGEST_LINE:,} characters")
        yield line


def _named(path: Path) -> Iterator[str]:
    """The files that a list names, whether or not they are there."""
    rows = _rows(path)
    header = _columns(rows[0]) if rows else []
    for row in rows[1:]:
        yield from _names(_cells(header, row))


def lay_out(listed: ListedObject, folder: Path) -> Path:
    """The object as a folder of its own in `folder`: its files, linked or copied."""
    top = folder / listed.name
    for name, path in listed.files.items():
        target = top / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except OSError:  # on another disk
            shutil.copy2(path, target)
    return top


def _columns(header: list[str]) -> list[str]:
    """The names of columns: `dc.Title` and `dcterms.title[en]` become `title`."""
    return [re.sub(r"^(?:dc|dcterms)[.:]|\[.*|\..*", "", name.strip().lower()) for name in header]


def _cells(header: list[str], row: list[str]) -> dict[str, tuple[str, ...]]:
    """The values of each column that has any."""
    cells: dict[str, tuple[str, ...]] = {}
    for name, cell in zip(header, row, strict=False):
        values = tuple(value.strip() for value in cell.split("|") if value.strip())
        if values:
            cells[name] = (*cells.get(name, ()), *values)
    return cells


def _check(
    folder: Path, header: list[str], row: list[str], folders: dict[Path, ListedFolder]
) -> Iterator[str]:
    if len(row) > len(header):
        yield f"there are {len(row)} values for {len(header)} columns"
        return
    cells = _cells(header, row)
    if not cells.get("title"):
        yield "there is no title"
    names = _names(cells)
    if not names:
        yield "there is no file"
    for name in names:
        path = folder / name
        if not is_key(name):
            yield f"{name[:200]!r} is not a path below the folder of the list"
        elif path.is_symlink() or any(parent.is_symlink() for parent in _below(path, folder)):
            yield f"{name[:200]} is a symbolic link"
        elif not path.is_file() and not (path.is_dir() and _listed_folder(path, folders).files):
            yield f"there is no file {name[:200]}"
        elif path.is_dir() and _listed_folder(path, folders).has_links:
            yield f"{name[:200]} contains symbolic links"


def _listed_folder(path: Path, folders: dict[Path, ListedFolder]) -> ListedFolder:
    if path not in folders:
        entries = sorted(path.rglob("*"))
        folders[path] = ListedFolder(
            files=tuple(each for each in entries if each.is_file()),
            has_links=any(each.is_symlink() for each in entries),
        )
    return folders[path]


def _below(path: Path, folder: Path) -> list[Path]:
    return [parent for parent in path.parents if parent.is_relative_to(folder) and parent != folder]


def _names(cells: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [name.removesuffix("/") for column in _FILES for name in cells.get(column, ())]


def _object(
    list_: Path,
    titles: list[str],
    header: list[str],
    row: list[str],
    line: int,
    folders: dict[Path, ListedFolder],
) -> ListedObject:
    cells, folder = _cells(header, row), list_.parent
    files: dict[str, Path] = {}
    for name in _names(cells):
        path = folder / name
        inside = [path] if path.is_file() else _listed_folder(path, folders).files
        files |= {each.relative_to(folder).as_posix(): each for each in inside}
    top = os.path.commonpath([str(Path(name).parent) for name in files]) if files else ""
    return ListedObject(
        line=line,
        name=f"{list_.stem}-line-{line}",
        files={name.removeprefix(f"{top}/") if top else name: path for name, path in files.items()},
        levels=_levels(cells),
        header=titles,
        row=row,
    )


def _levels(cells: Mapping[str, tuple[str, ...]]) -> tuple[DeliveredLevel, ...]:
    record = DublinCore(**{name: cells[name] for name in _ELEMENTS if name in cells})
    level, values = dublin_core.to_fields(record)
    host = {name: cells[name][0] for name in _HOST if name in cells}
    if "journal" in host:
        host["title"] = host.pop("journal")
        host |= {"date": str(values["date"])[:4]} if values.get("date") else {}
    own = DeliveredLevel(level=level, fields=values, xml="", kind="")
    levels = descriptions.below_journal(own, host)
    if levels[-1].level is RecordLevel.MONOGRAPH and "article" in " ".join(record.type).lower():
        return (DeliveredLevel(level=RecordLevel.ARTICLE, fields=own.fields, xml="", kind=""),)
    return levels
