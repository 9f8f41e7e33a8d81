"""Read an object of loose files: what the files are, when they were written, and which of them describe it.

1. The files are the payload of the submission (`submission.payload_of`), without the folder that contains
   everything.
2. A description is a file named like one (`dc.xml`, `marc.xml`, `dublin_core.xml`, `thesis.mods.xml`) at the
   top, in `metadata/`, or beside the payload of a bag; or the XML file with the name of the only other file.
   It is metadata and not a file of the object, except JATS, which is the article itself.
3. Everything else that came (manifests, inventories, older versions, files of operating systems) is kept with
   the package.

The folder of an offline browser is a web site (`mirrors`): its files are captures with addresses and dates.

An object without a description has the name of its folder as title; a person completes it.
"""

import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from lxml import etree

from webdepot import digest
from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Submission, SubmissionKind
from webdepot.depot.ocfl import validation
from webdepot.errors import InputError
from webdepot.exchange import urn
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.incoming import CheckedFile, RefusedObject
from webdepot.exchange.metadata import descriptions
from webdepot.exchange.metadata.lmer import LmerFile, LmerObject
from webdepot.exchange.metadata.regbib import DeliveredLevel, DeliveredObject
from webdepot.exchange.transfer_zip import UNKNOWN_FORMAT
from webdepot.services.intake import mets_objects, mirrors, object_lists
from webdepot.services.intake.mirrors import Mirror
from webdepot.services.intake.object_lists import ListedObject
from webdepot.times import to_iso, written_at

UNKNOWN_MIME = "application/octet-stream"
_DESCRIPTION = re.compile(
    r"(?:.*[-_.])?(?:dc|oai_dc|dublin_?core|marc|marc21|marcxml|mods|mab|mabxml|jats|mets|metadata|record)\.xml",
    re.IGNORECASE,
)
_AFTER_NAME = re.compile(r"(?:[-_.][A-Za-z0-9_]{1,20})?\.xml", re.IGNORECASE)
"""What follows the name of a file in the name of its description."""
_IN_METADATA = re.compile(r"(?:metadata|descriptive|metadata/descriptive)/[^/]+", re.IGNORECASE)
_OF_SYSTEMS = re.compile(
    r"(?:.*/)?(?:\.DS_Store|Thumbs\.db|desktop\.ini|\._[^/]*)|__MACOSX/.*", re.IGNORECASE
)
_START = re.compile(r"(?:index|default|start|home)\.x?html?", re.IGNORECASE)
_GENRES = {"image": "Image", "audio": "Sound", "video": "Moving image"}
_EARLIEST = datetime(1980, 1, 2, tzinfo=UTC)
"""Earlier times are those of packers that know no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadObject:
    """A submitted object, read and checked."""

    delivered: DeliveredObject
    files: Sequence[CheckedFile]
    around: Mapping[str, bytes | Path]
    """Everything that came with it and is not a file of the object, by path."""
    warnings: Sequence[str] = ()
    """What its sender should know; it is taken in anyway."""
    mark: str = "object"
    """The beginning of the local part of a URN that it gets here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDescription:
    levels: tuple[DeliveredLevel, ...]
    path: Path | None = None
    """The file it was read from; none if METS embeds it."""
    is_content: bool = False


def read(opened: Submission, listed: ListedObject | None = None) -> ReadObject:
    """An object of loose files; RefusedObject if its description cannot be used. If a list of objects
    describes it, all files are content.
    """
    if listed is not None:
        files = check_files(submission.payload_of(opened))
        return ReadObject(
            delivered=deliver(listed.levels, files, name=_name_of(opened)),
            files=files,
            around={**around(opened, files), object_lists.ROW_FILE: listed.text.encode()},
        )
    payload = without_top(
        {
            name: path
            for name, path in submission.payload_of(opened).items()
            if not _OF_SYSTEMS.fullmatch(name)
        }
    )
    mirror = mirrors.find(payload)
    if mirror is not None:
        return _of_mirror(opened, mirror)
    of_mets = mets_objects.read(opened, payload)
    description = (
        FoundDescription(levels=of_mets.levels)
        if of_mets is not None and of_mets.levels
        else _find_description(opened, payload)
    )
    is_beside = description is not None and not description.is_content
    own = frozenset([description.path]) if description is not None and is_beside else frozenset()
    paths = of_mets.files if of_mets is not None else payload
    files = check_files(
        {name: path for name, path in paths.items() if path not in own} or paths,
        mimes=of_mets.mimes if of_mets is not None else {},
    )
    if not files:
        raise RefusedObject("it contains no files besides those of an operating system")
    levels = description.levels if description is not None else (_undescribed(opened, files),)
    name, identifier = _name_of(opened), _identifier_of(opened)
    if of_mets is not None:
        name, identifier = of_mets.title or name, identifier or of_mets.identifier
        if description is None:
            levels[-1].fields["title"] = name
    return ReadObject(
        delivered=deliver(levels, files, name=name, identifier=identifier),
        files=files,
        around=around(opened, files),
        warnings=of_mets.warnings if of_mets is not None else (),
    )


def _of_mirror(opened: Submission, mirror: Mirror) -> ReadObject:
    """The folder of an offline browser: a web site and one slice of it, with addresses and dates."""
    plain = check_files(mirror.files, mimes=mirror.mimes)
    files = [
        replace(file, facts=replace(file.facts, file_date_time=to_iso(mirror.dates[file.member])))
        for file in plain
    ]
    host = urlsplit(mirror.site).hostname or mirror.site
    day = f"{mirror.at:%Y-%m-%d}"
    site = {"title": host, "genre": "Website", "addresses": (mirror.site,)}
    slice_ = {"title": host, "genre": "Website", "addresses": (mirror.site,), "date": day, "part": day}
    levels = (
        DeliveredLevel(level=RecordLevel.SITE, fields=dict(site), xml="", kind=""),
        DeliveredLevel(level=RecordLevel.SLICE, fields=dict(slice_), xml="", kind=""),
    )
    delivered = deliver(levels, files, name=host)
    urls = {file.facts.file_identifier: mirror.urls[file.member] for file in files}
    start = next((each for each, url in urls.items() if url == mirror.site), delivered.object.start_file)
    return ReadObject(
        delivered=replace(
            delivered,
            is_web=True,
            urls=urls,
            is_rewritten=mirror.is_rewritten,
            object=replace(delivered.object, master_creation_date=to_iso(mirror.at), start_file=start),
        ),
        files=files,
        around=around(opened, files),
        mark="mirror",
    )


def without_top(payload: Mapping[str, Path]) -> dict[str, Path]:
    """The files without the folder that contains all of them, unless it is named like a host."""
    tops = {name.partition("/")[0] for name in payload}
    top = next(iter(tops), "")
    if len(tops) != 1 or top in payload or "." in top:
        return dict(payload)
    return {name.partition("/")[2]: path for name, path in payload.items()}


def check_files(paths: Mapping[str, Path], *, mimes: Mapping[Path, str] | None = None) -> list[CheckedFile]:
    """Measure the files of an object, in the order of their paths; `mimes` are media types that are known."""
    types = mimetypes.MimeTypes(filenames=())  # the same on every machine
    files = []
    for number, (name, path) in enumerate(sorted(paths.items()), start=1):
        folder, _, last = name.rpartition("/")
        value = digest.of_file(path).value.hex()
        size = path.stat().st_size
        facts = LmerFile(
            file_identifier=f"F{number:05d}",
            path=f"/{folder}/" if folder else "/",
            name=last,
            size=str(size),
            file_date_time=to_iso(_written_at(path)),
            file_checksum=value,
            file_checksum_type="SHA-256",
            mime_type=(mimes or {}).get(path) or types.guess_type(last, strict=False)[0] or UNKNOWN_MIME,
            format=UNKNOWN_FORMAT,
        )
        files.append(CheckedFile(facts=facts, path=path, sha256=value, size_bytes=size))
    return files


def deliver(
    levels: tuple[DeliveredLevel, ...], files: Sequence[CheckedFile], *, name: str, identifier: str = ""
) -> DeliveredObject:
    """The object that these levels and files make. Its date is that of its newest file."""
    lowest = levels[-1].fields
    if not lowest.get("urn") and urn.is_nbn(identifier.lower()):
        lowest["urn"] = identifier
    lowest.setdefault("title", name)
    dates = [file.facts.file_date_time for file in files]
    return DeliveredObject(
        levels=levels,
        object=LmerObject(
            name=str(lowest["title"]),
            persistent_identifier=identifier,
            master_creation_date=max(dates),
            number_of_files=str(len(files)),
            start_file=_start_of(files).facts.file_identifier,
        ),
        files=tuple(file.facts for file in files),
        foreign=(),
        is_web=False,
    )


def around(opened: Submission, files: Sequence[CheckedFile]) -> dict[str, bytes | Path]:
    """Everything in a submission that is not a file of the object, by path."""
    if opened.root.is_file():
        described = _beside(opened.root)
        return {described.name: described} if described is not None else {}
    taken = {file.path for file in files}
    return {
        path.relative_to(opened.root).as_posix(): path
        for path in sorted(opened.root.rglob("*"))
        if path.is_file() and path not in taken
    }


def read_description(path: Path, name: str) -> tuple[tuple[DeliveredLevel, ...], bool]:
    """The levels that a file describes (none if it is not a description), and whether it is content too.
    InputError if it is not safe, well-formed XML.
    """
    if path.stat().st_size > submission.LONGEST_DESCRIPTION_BYTES:
        raise InputError(f"{name} is larger than {submission.LONGEST_DESCRIPTION_BYTES >> 20} MB.")
    root: etree._Element = descriptions.parse(path.read_bytes(), what=name)
    return descriptions.levels_of(root), descriptions.is_content(root)


def _find_description(opened: Submission, payload: Mapping[str, Path]) -> FoundDescription | None:
    """The first description; RefusedObject if a file that is named like one cannot be read."""
    for name, path in _iter_candidates(opened, payload):
        is_named = _DESCRIPTION.fullmatch(name.rpartition("/")[2]) is not None
        try:
            levels, is_content = read_description(path, name)
        except InputError as error:
            if is_named:
                raise RefusedObject(str(error)) from error
            continue
        if levels:
            return FoundDescription(levels=levels, path=path, is_content=is_content)
    return None


def _iter_candidates(opened: Submission, payload: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    if opened.root.is_file():
        described = _beside(opened.root)
        if described is not None:
            yield described.name, described
        if opened.root.name.lower().endswith(".xml"):
            yield opened.root.name, opened.root
        return
    if opened.kind is SubmissionKind.BAG:
        for path in sorted(opened.root.rglob("*.xml")):
            name = path.relative_to(opened.root).as_posix()
            if not name.startswith("data/") and path.is_file():
                yield name, path
    xml = {name: path for name, path in payload.items() if name.lower().endswith(".xml")}
    others = [name for name in payload if name not in xml]
    stem = others[0].rpartition(".")[0] if len(others) == 1 else ""
    for name, path in sorted(xml.items(), key=lambda item: (item[0].count("/"), item[0])):
        is_top = "/" not in name
        if (is_top and (_DESCRIPTION.fullmatch(name) or name.rpartition(".")[0] == stem)) or (
            _IN_METADATA.fullmatch(name)
        ):
            yield name, path
    if len(xml) == 1 and not is_described(xml):  # an article in JATS may have any name
        yield from xml.items()


def is_described(names: Mapping[str, Path]) -> bool:
    return any(_DESCRIPTION.fullmatch(name) for name in names)


def _beside(file: Path) -> Path | None:
    """The description next to a single file: `thesis.xml`, `thesis.dc.xml` or `thesis.pdf.xml`."""
    names = (file.name, file.name.rpartition(".")[0] or file.name)
    return next(
        (
            path
            for path in sorted(file.parent.glob("*.xml"))
            if path != file and _is_named_after(path.name, names) and path.is_file() and not path.is_symlink()
        ),
        None,
    )


def _is_named_after(name: str, names: Sequence[str]) -> bool:
    return any(
        name.lower().startswith(each.lower()) and _AFTER_NAME.fullmatch(name[len(each) :]) for each in names
    )


def _undescribed(opened: Submission, files: Sequence[CheckedFile]) -> DeliveredLevel:
    kinds = {file.facts.mime_type.partition("/")[0] for file in files}
    genre = _GENRES.get(next(iter(kinds))) if len(kinds) == 1 else None
    fields = {"title": _name_of(opened)} | ({"genre": genre} if genre else {})
    return DeliveredLevel(level=RecordLevel.MONOGRAPH, fields=fields, xml="", kind="")


def _name_of(opened: Submission) -> str:
    name = opened.path.name
    return name if opened.path.is_dir() else re.sub(r"(?:\.tar)?\.[A-Za-z0-9]{1,5}\Z", "", name) or name


def _identifier_of(opened: Submission) -> str:
    """The identifier that the packing gives an object."""
    if opened.kind is SubmissionKind.OCFL:
        return validation.identifier_of(validation.find_objects(opened.root)[0])
    info = opened.root / "bag-info.txt"
    if opened.kind is SubmissionKind.BAG and info.is_file():
        match = re.search(
            r"^External-Identifier[ \t]*:(.*)",
            info.read_bytes()[:65_536].decode(errors="replace"),
            re.MULTILINE | re.IGNORECASE,
        )
        return match[1].strip()[:500] if match else ""
    return ""


def _start_of(files: Sequence[CheckedFile]) -> CheckedFile:
    """The file to open first: a start page, else a PDF, else the first file; the highest one of its kind."""
    by_depth = sorted(files, key=lambda file: file.member.count("/"))
    for matches in (
        lambda file: _START.fullmatch(file.facts.name) is not None,
        lambda file: file.facts.mime_type == "application/pdf",
    ):
        if chosen := next(filter(matches, by_depth), None):
            return chosen
    return by_depth[0]


def _written_at(path: Path) -> datetime:
    """When a file was written, to the second."""
    return max(written_at(path), _EARLIEST)
