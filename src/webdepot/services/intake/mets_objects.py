"""Read an object whose files METS lists: an E-ARK package (CSIP), or METS of others beside files.

1. `METS.xml` or `mets.xml` at the top. An E-ARK package must meet the rules of `exchange.csip`, also in the
   METS file of each representation.
2. Every file that it lists must be present, with the listed size and checksum.
3. Of an E-ARK package, the data of the representations and the documentation are the files of the object; of
   other METS, the files that it lists. The description is what METS embeds or refers to, or a description
   beside it; everything is kept with the package.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lxml import etree

from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Submission
from webdepot.errors import InputError
from webdepot.exchange import csip, incoming
from webdepot.exchange.csip import ListedFile
from webdepot.exchange.incoming import RefusedObject
from webdepot.exchange.metadata import descriptions, markup
from webdepot.exchange.metadata.regbib import METS, DeliveredLevel

_MOST_REASONS = 50
_IN_PACKAGE = re.compile(r"(?:representations/[^/]+/data|documentation)/.", re.IGNORECASE)
_INNER = re.compile(r"representations/[^/]+/METS\.xml", re.IGNORECASE)
_DATA = re.compile(r"representations/[^/]+/data/", re.IGNORECASE)


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


def read(opened: Submission, payload: Mapping[str, Path]) -> MetsObject | None:
    """The object that METS at the top of the payload lists; None if there is none. RefusedObject with all
    reasons if it is wrong.
    """
    name = next((each for each in payload if each.lower() == submission.UOF_METS), "")
    root = _parse(payload[name], name) if name else None
    if root is None or root.tag != f"{{{METS}}}mets" or not _has_files(root):
        return None
    is_package = csip.is_package(root)
    listed: dict[str, ListedFile] = {}
    reasons = list(csip.check(root, name)) if is_package else []
    reasons += _collect(root, "", payload, listed)
    for each in sorted(payload):
        if is_package and _INNER.fullmatch(each):
            inner = _parse(payload[each], each)
            reasons += csip.check(inner, each)
            reasons += _collect(inner, each.rpartition("/")[0] + "/", payload, listed)
    reasons += _check(listed, payload)
    if is_package and not any(_DATA.match(each) for each in payload):
        reasons.append("CSIPSTR: there are no files in representations/NAME/data")
    if reasons:
        raise RefusedObject(*reasons[:_MOST_REASONS])
    own = _IN_PACKAGE.match if is_package else listed.__contains__
    about = {each for each, file in listed.items() if file.use == "Metadata"}
    files = {each: path for each, path in payload.items() if own(each) and each not in about}
    return MetsObject(
        files=files,
        levels=_levels(root, listed, payload),
        identifier=root.get("OBJID", ""),
        title=root.get("LABEL", ""),
        mimes={payload[each]: file.mime for each, file in listed.items() if file.mime},
    )


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
) -> list[str]:
    """Add the files that a METS file lists, by their path in the package; what is wrong with the list."""
    try:
        for file in csip.iter_files(root):
            path = f"{folder}{file.path}"
            # Many write all paths from the top of the package, also inside a representation.
            path = file.path if folder and path not in payload and file.path in payload else path
            listed.setdefault(path, file)
    except InputError as error:
        return [str(error)]
    return []


def _check(listed: Mapping[str, ListedFile], payload: Mapping[str, Path]) -> Iterator[str]:
    for name, file in sorted(listed.items()):
        path = payload.get(name)
        if path is None:
            yield f"{name[:200]} is listed but not in the package"
        elif file.size and file.size != str(path.stat().st_size):
            yield f"{name[:200]} has {path.stat().st_size} bytes, but {file.size[:30]} are listed"
        else:
            yield from incoming.check_checksum(path, name, file.checksum, file.checksum_type)


def _levels(
    root: etree._Element, listed: Mapping[str, ListedFile], payload: Mapping[str, Path]
) -> tuple[DeliveredLevel, ...]:
    """What METS embeds, else the first description that it refers to."""
    embedded = descriptions.levels_of(root)
    if embedded:
        return embedded
    names: Sequence[str] = [name for name, file in listed.items() if file.use == "Metadata"]
    for name in names:
        path = payload[name]
        if not name.lower().endswith(".xml") or path.stat().st_size > submission.LONGEST_DESCRIPTION_BYTES:
            continue
        try:
            levels = descriptions.levels_of(descriptions.parse(path.read_bytes(), what=name))
        except InputError as error:
            raise RefusedObject(str(error)) from error
        if levels:
            return levels
    return ()
