"""Read an object whose files METS lists: an E-ARK package (CSIP), or METS of others beside files.

1. `METS.xml` or `mets.xml` at the top. An E-ARK package must meet the rules of level MUST (`csip_rules`).
   Other rules, and those for the METS files of representations, give warnings.
2. Every file that it lists must be present, with the listed size and checksum.
3. Of an E-ARK package, the data of the representations and the documentation are the files of the object,
   whether they are in the folders of that name or in a file group for that use; of other METS, the files that
   it lists. The description is what METS embeds or refers to, or a description beside it; everything is kept
   with the package.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from lxml import etree

from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Submission
from webdepot.errors import InputError
from webdepot.exchange import csip, csip_rules, incoming
from webdepot.exchange.csip import ListedFile
from webdepot.exchange.incoming import RefusedObject
from webdepot.exchange.metadata import descriptions, markup
from webdepot.exchange.metadata.regbib import METS, DeliveredLevel
from webdepot.model import Finding, Severity

_MOST_REASONS = 50
_MOST_FINDINGS = 1000
_IN_PACKAGE = re.compile(r"(?:representations/[^/]+/data|documentation)/.", re.IGNORECASE)
_CONTENT_USE = re.compile(r"(?:representations|documentation)(?:/|\Z)", re.IGNORECASE)
_INNER = re.compile(r"representations/[^/]+/METS\.xml", re.IGNORECASE)
_LIKE_PACKAGE = re.compile(r"representations/[^/]+/(?:data|metadata)/.", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetsObject:
    """What METS says about an object."""

    files: Mapping[str, Path]
    """The files of the object."""
    levels: tuple[DeliveredLevel, ...]
    """Empty if it describes nothing."""
    identifier: str
    title: str
    mimes: Mapping[Path, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    """Rules that the sender should know of; the object is taken in anyway."""


def read(opened: Submission, payload: Mapping[str, Path]) -> MetsObject | None:
    """The object that METS at the top of the payload lists; None if there is none. RefusedObject with all
    reasons if it is wrong.
    """
    name = next((each for each in payload if each.lower() == submission.UOF_METS), "")
    if not name and any(map(_LIKE_PACKAGE.match, payload)):
        raise RefusedObject("CSIPSTR4: it has the folders of an E-ARK package, but no METS.xml")
    root = _parse(payload[name], name) if name else None
    if root is None or root.tag != f"{{{METS}}}mets":
        return None
    is_package = csip.is_package(root)
    if not is_package and not _has_files(root):
        return None
    listed: dict[str, ListedFile] = {}
    findings = list(_check_package(root, name, payload)) if is_package else []
    findings += _collect(root, "", payload, listed)
    for each in sorted(payload):
        if is_package and _INNER.fullmatch(each):
            findings += _check_inner(payload[each], each, payload, listed)
    findings += islice(_check(listed, payload, is_package=is_package), _MOST_FINDINGS)
    own = _names_of_content(listed, payload) if is_package else listed.keys()
    about = {each for each, file in listed.items() if file.use == "Metadata"}
    files = {each: path for each, path in payload.items() if each in own and each not in about}
    if not files:
        findings.append(_wrong("there are no files in representations/NAME/data or documentation"))
    reasons = [each.message for each in findings if each.severity is Severity.ERROR]
    if reasons:
        raise RefusedObject(*reasons[:_MOST_REASONS])
    return MetsObject(
        files=files,
        levels=_levels(root, listed, payload),
        identifier=root.get("OBJID", ""),
        title=root.get("LABEL", ""),
        mimes={payload[each]: file.mime for each, file in listed.items() if file.mime and each in payload},
        warnings=tuple(each.message for each in findings)[:_MOST_REASONS],
    )


def _names_of_content(listed: Mapping[str, ListedFile], payload: Mapping[str, Path]) -> set[str]:
    """The files of an E-ARK package that are its object: not metadata, schemas or METS."""
    by_use = {
        name for name, file in listed.items() if _CONTENT_USE.match(file.use) and not _INNER.match(name)
    }
    return by_use | {name for name in payload if _IN_PACKAGE.match(name)}


def _check_package(root: etree._Element, name: str, payload: Mapping[str, Path]) -> Iterator[Finding]:
    yield from islice(csip_rules.check(root, name, payload), _MOST_FINDINGS)
    if name != csip.NAME:
        yield _wrong(f"CSIPSTR4: the METS file is named {name}, not {csip.NAME}")
    yield from islice(csip_rules.check_folders(payload), _MOST_FINDINGS)


def _check_inner(
    path: Path, name: str, payload: Mapping[str, Path], listed: dict[str, ListedFile]
) -> Iterator[Finding]:
    """The METS file of a representation. What it breaks is a warning: the files are checked anyway, and
    the METS file of the package describes the whole.
    """
    root = _parse(path, name)
    for each in islice(csip_rules.check(root, name, payload), _MOST_FINDINGS):
        yield replace(each, severity=Severity.WARNING)
    yield from _collect(root, name.rpartition("/")[0], payload, listed)


def _parse(path: Path, name: str) -> etree._Element:
    """The root; RefusedObject if it is not well-formed, too large or not safe."""
    if path.stat().st_size > submission.LONGEST_UOF_BYTES:
        raise RefusedObject(f"{name} is larger than {submission.LONGEST_UOF_BYTES >> 20} MB")
    try:
        return markup.parse(path.read_bytes(), what=name)
    except InputError as error:
        raise RefusedObject(str(error)) from error


def _has_files(root: etree._Element) -> bool:
    return root.find(f"{{{METS}}}fileSec//{{{METS}}}file") is not None


def _collect(
    root: etree._Element, folder: str, payload: Mapping[str, Path], listed: dict[str, ListedFile]
) -> list[Finding]:
    """Add the files that a METS file lists, by their path in the package; what is wrong with the list."""
    try:
        for file in csip.iter_files(root, folder):
            # Many write all paths from the top of the package, also inside a representation.
            top = file.path.removeprefix(f"{folder}/")
            path = top if folder and file.path not in payload and top in payload else file.path
            listed.setdefault(path, file)
    except InputError as error:
        return [_wrong(str(error))]
    return []


def _check(
    listed: Mapping[str, ListedFile], payload: Mapping[str, Path], *, is_package: bool
) -> Iterator[Finding]:
    """What is wrong with the files that are listed. A schema that is missing or different is a warning: it is
    kept, but nothing of the object depends on it.
    """
    by_case = {name.lower(): name for name in payload}
    checked: set[Path] = set()
    for name, file in sorted(listed.items(), key=lambda item: (item[0] not in payload, item[0])):
        path = payload.get(name) or payload.get(by_case.get(name.lower(), ""))
        if path in checked:  # a name has thousands of spellings in capitals: the file is read once
            continue
        if path is not None:
            checked.add(path)
        is_schema = is_package and (file.use.lower().startswith("schema") or name.lower().endswith(".xsd"))
        severity = Severity.WARNING if is_schema else Severity.ERROR
        for fact, message in _mismatches(name, file, path):
            number = csip_rules.number_of(file.section, fact) if is_package else ""
            yield _wrong(f"{number}: {message}" if number else message, severity)


def _mismatches(name: str, file: ListedFile, path: Path | None) -> Iterator[tuple[str, str]]:
    """The fact that is wrong, and what is wrong with it."""
    if path is None:
        yield csip_rules.PLACE, f"{name[:200]} is listed but not in the package"
    elif file.size and file.size != str(path.stat().st_size):
        size_bytes = path.stat().st_size
        yield csip_rules.SIZE, f"{name[:200]} has {size_bytes} bytes, but {file.size[:30]} are listed"
    else:
        for message in incoming.check_checksum(path, name, file.checksum, file.checksum_type):
            yield csip_rules.CHECKSUM, message


def _wrong(message: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code="submission.mets", severity=severity, subject="METS.xml", message=message)


def _levels(
    root: etree._Element, listed: Mapping[str, ListedFile], payload: Mapping[str, Path]
) -> tuple[DeliveredLevel, ...]:
    """What METS embeds, else the first description that it refers to."""
    embedded = descriptions.levels_of(root)
    if embedded:
        return embedded
    names: Sequence[str] = [name for name, file in listed.items() if file.use == "Metadata"]
    for name in names:
        path = payload.get(name)
        if (
            path is None
            or not name.lower().endswith(".xml")
            or path.stat().st_size > submission.LONGEST_DESCRIPTION_BYTES
        ):
            continue
        try:
            levels = descriptions.levels_of(descriptions.parse(path.read_bytes(), what=name))
        except InputError as error:
            raise RefusedObject(str(error)) from error
        if levels:
            return levels
    return ()
