"""The rules of CSIP 2 for the METS file of an E-ARK package, each with its number.

https://earkcsip.dilcis.eu/ describes them. A rule of level MUST is an error, one of level SHOULD a warning.
Packages do not say which version they follow, so a rule that the newest version (2.2) relaxed or dropped is
a warning. Vocabularies grow with each version, so a term that is not known here is a warning too.
Rules about folders (CSIPSTR) need the files: `check_folders`. Identifiers (`ID`) are checked where a receiver
needs them.
"""

import re
from collections.abc import Callable, Collection, Iterator

from lxml import etree

from webdepot.exchange import csip
from webdepot.exchange.metadata.regbib import METS, XLINK
from webdepot.model import Finding, Severity

SIZE, CHECKSUM, PLACE = "size", "checksum", "place"
_NUMBERS = {
    "file": {SIZE: "CSIP69", CHECKSUM: "CSIP71", PLACE: "CSIP79"},
    "dmdSec": {SIZE: "CSIP27", CHECKSUM: "CSIP29", PLACE: "CSIP24"},
    "digiprovMD": {SIZE: "CSIP41", CHECKSUM: "CSIP43", PLACE: "CSIP38"},
    "rightsMD": {SIZE: "CSIP54", CHECKSUM: "CSIP56", PLACE: "CSIP51"},
}
_FIRST_NUMBERS = {"dmdSec": 22, "digiprovMD": 36, "rightsMD": 49}
"""The first rule for references in a section; the others follow in the order of `_REFERENCE`."""
_REFERENCE = (
    "LOCTYPE", "type", "href", "MDTYPE", "MIMETYPE", "SIZE", "CREATED", "CHECKSUM", "CHECKSUMTYPE",
)  # fmt: skip
_FILE = {
    "ID": "CSIP67",
    "MIMETYPE": "CSIP68",
    "SIZE": "CSIP69",
    "CREATED": "CSIP70",
    "CHECKSUM": "CSIP71",
    "CHECKSUMTYPE": "CSIP72",
}
_STATUS = {"dmdSec": "CSIP20", "digiprovMD": "CSIP34", "rightsMD": "CSIP47"}
_MEDIA_TYPE = re.compile(
    r"(?:application|audio|font|haptics|image|message|model|multipart|text|video)/[\w.+!#$&^-]{1,127}(?:;.*)?",
    re.ASCII,
)
_CATEGORIES = frozenset({
    "textual works - print", "textual works - digital", "textual works - electronic serials",
    "digital musical composition (score-based representations)", "musical scores - print",
    "musical scores - digital", "photographs - print", "photographs - digital",
    "other graphic images - print", "other graphic images - digital", "microforms",
    "audio - on tangible medium (digital or analog)", "audio - media-independent (digital)",
    "motion pictures - digital and physical media", "video - file-based and physical media", "software",
    "software and video games", "email", "datasets", "geospatial data",
    "geographic information system (gis) - vector data", "gis raster and georeferenced images",
    "gis vector and raster combined", "non-gis cartographic", "2d and 3d computer aided design",
    "design (schematics, architectural drawings) - print",
    "scanned 3d objects (output from photogrammetry scanning)", "databases", "websites", "web archives",
    "collection", "event", "image", "interactive resource", "moving image", "sound", "still image", "text",
    "physical object", "service", "mixed", "other",
})  # fmt: skip
_CONTENT_TYPES = re.compile(
    r"(?:ERMS|SIARD1|SIARD2|SIARDDK|GeoData|MIXED|OTHER|(?:cits|cs)[a-z0-9]{1,20}_v[0-9]{1,2}_[0-9]{1,2})"
)
_PACKAGE_KINDS = frozenset({"SIP", "AIP", "DIP", "AIU", "AIC"})
_GROUPS = re.compile(r"(?:metadata|documentation|schemas|representations)(?:/.*)?", re.IGNORECASE)
_MUST_BE_GROUPS = (("Documentation", "CSIP60"), ("Schemas", "CSIP113"), ("Representations", "CSIP114"))
_DIVISIONS = (
    ("Documentation", "CSIP93", "CSIP96, CSIP116"),
    ("Schemas", "CSIP97", "CSIP100, CSIP118"),
    ("Representations", "CSIP101", "CSIP104, CSIP119, CSIP108, CSIP109"),
)


def number_of(section: str, fact: str) -> str:
    """The number of the rule that requires `fact` of the files in a section; empty if there is none."""
    return _NUMBERS.get(section, {}).get(fact, "")


def check(root: etree._Element, where: str, names: Collection[str]) -> Iterator[Finding]:
    """One finding for each rule that a METS file breaks; `names` are the paths of the package."""
    folders = folders_of(names)
    yield from _check_root(root, where)
    yield from _check_profile(root, where)
    header = root.find(f"{{{METS}}}metsHdr")
    if header is None:
        yield _error("CSIP117", f"{where} has no metsHdr")
    else:
        yield from _check_header(header, where)
    yield from _check_sections(root, where, folders)
    section = root.find(f"{{{METS}}}fileSec")
    if section is None:
        yield _warning("CSIP58", f"{where} has no file section")
    else:
        yield from _check_files(root, section, where, folders)
    maps = csip.csip_maps(root)
    if len(maps) == 1:
        yield from _check_structure(root, maps[0], where, names)
    else:
        yield _error(
            "CSIP80, CSIP82",
            f"{where} has {len(maps) or 'no'} structural maps with the label CSIP instead of one",
        )


def folders_of(names: Collection[str]) -> frozenset[str]:
    """All folders of these paths, in lower case."""
    return frozenset(
        "/".join(steps[:count])
        for steps in (name.lower().split("/") for name in names)
        for count in range(1, len(steps))
    )


def check_folders(names: Collection[str]) -> Iterator[Finding]:
    """One finding for each rule about folders that the paths of a package break."""
    folders = folders_of(names)
    if not any(name.startswith("metadata/") for name in names):
        yield _warning("CSIPSTR5", "there is no folder metadata")
    if "representations" not in folders:
        yield _warning("CSIPSTR9", "there is no folder representations")
    inside = {name.split("/")[1] for name in names if re.match(r"representations/[^/]+/", name)}
    for each in sorted(inside):
        for folder, number in (("data", "CSIPSTR11"), ("metadata", "CSIPSTR13")):
            if f"representations/{each}/{folder}".lower() not in folders:
                yield _warning(number, f"the representation {each[:100]} has no folder {folder}")
        if f"representations/{each}/METS.xml" not in names:
            yield _warning("CSIPSTR12", f"the representation {each[:100]} has no METS.xml")


def _check_root(root: etree._Element, where: str) -> Iterator[Finding]:
    for name, number in (("OBJID", "CSIP1"), ("TYPE", "CSIP2"), ("PROFILE", "CSIP6")):
        if not root.get(name, "").strip():
            yield _error(number, f"{where} has no {name}")
    kind, other = root.get("TYPE", ""), _own(root, "OTHERTYPE")
    if kind and _plain(kind) not in _CATEGORIES:
        yield _warning("CSIP2", f"the TYPE of {where}, {kind[:60]!r}, is not in the vocabulary")
    if _plain(kind) == "other":
        if not other:
            yield _error("CSIP2", f"{where} has the TYPE {kind}, but no OTHERTYPE")
        elif _plain(other) in _CATEGORIES:
            yield _error("CSIP3", f"the OTHERTYPE of {where}, {other[:60]!r}, is a value of TYPE")
    elif other:
        yield _error("CSIP3", f"{where} has an OTHERTYPE, but its TYPE is not OTHER")
    if not _own(root, "CONTENTINFORMATIONTYPE"):
        yield _warning("CSIP4", f"{where} has no CONTENTINFORMATIONTYPE")
    yield from _check_content_type(root, where, ("CSIP4", "CSIP4, CSIP5", "CSIP5"))


def _check_profile(root: etree._Element, where: str) -> Iterator[Finding]:
    """The METS profile, and the kind of package that it is for."""
    profile, header = root.get("PROFILE", "").strip(), root.find(f"{{{METS}}}metsHdr")
    if profile and not csip.is_profile(profile):
        yield _warning("CSIP6, SIP2", f"the PROFILE of {where}, {profile[:60]!r}, is not a profile of E-ARK")
    kind = _own(header, "OAISPACKAGETYPE") if header is not None else ""
    if profile.endswith("E-ARK-SIP.xml") and kind != "SIP":
        yield _error("SIP4", f"{where} has the profile of a SIP, but the OAISPACKAGETYPE {kind[:40]!r}")


def _check_content_type(
    element: etree._Element, what: str, numbers: tuple[str, str, str]
) -> Iterator[Finding]:
    """The content information type: its vocabulary, and the other name that only `OTHER` may have."""
    kind, other = _own(element, "CONTENTINFORMATIONTYPE"), _own(element, "OTHERCONTENTINFORMATIONTYPE")
    if kind and not _CONTENT_TYPES.fullmatch(kind):
        yield _warning(
            numbers[0], f"the CONTENTINFORMATIONTYPE of {what}, {kind[:60]!r}, is not in the vocabulary"
        )
    if kind == "OTHER" and not other:
        yield _error(numbers[1], f"{what} has the CONTENTINFORMATIONTYPE OTHER, but does not say which")
    elif kind == "OTHER" and other != "OTHER" and _CONTENT_TYPES.fullmatch(other):
        yield _error(
            numbers[2], f"the OTHERCONTENTINFORMATIONTYPE of {what}, {other[:60]!r}, is in the vocabulary"
        )
    elif kind != "OTHER" and other:
        yield _error(numbers[2], f"{what} has an OTHERCONTENTINFORMATIONTYPE, but its type is not OTHER")


def _check_header(header: etree._Element, where: str) -> Iterator[Finding]:
    if not header.get("CREATEDATE", "").strip():
        yield _error("CSIP7", f"the header of {where} has no CREATEDATE")
    if not header.get("LASTMODDATE", "").strip():
        yield _warning("CSIP8", f"the header of {where} has no LASTMODDATE")
    kind = _own(header, "OAISPACKAGETYPE")
    if kind not in _PACKAGE_KINDS:
        stated = f"the OAISPACKAGETYPE {kind[:40]!r}" if kind else "no OAISPACKAGETYPE"
        yield _error(
            "CSIP9",
            f"the header of {where} has {stated}; it must be one of {', '.join(sorted(_PACKAGE_KINDS))}",
        )
    agents = header.findall(f"{{{METS}}}agent")
    if not agents:
        yield _error("CSIP10, CSIP11", f"the header of {where} has no agent with the role CREATOR")
        return
    creators = [agent for agent in agents if agent.get("ROLE") == "CREATOR"]
    if not creators:
        yield _error("CSIP11", f"the header of {where} has no agent with the role CREATOR")
        return
    # Of several creators, one must be the program that made the package; the one nearest to it is judged.
    breaches = [list(_check_program(agent, where)) for agent in creators]
    yield from min(breaches, key=len)


def _check_program(agent: etree._Element, where: str) -> Iterator[Finding]:
    """The agent that represents the program that made the package."""
    if agent.get("TYPE") != "OTHER":
        yield _error("CSIP12", f"the creator in the header of {where} is not of the TYPE OTHER")
    if agent.get("OTHERTYPE") != "SOFTWARE":
        yield _error("CSIP13", f"the creator in the header of {where} is not of the OTHERTYPE SOFTWARE")
    if not (agent.findtext(f"{{{METS}}}name") or "").strip():
        yield _error("CSIP14", f"the creator in the header of {where} has no name")
    notes = agent.findall(f"{{{METS}}}note")
    if len(notes) != 1 or not (notes[0].text or "").strip():
        yield _error(
            "CSIP15", f"the creator in the header of {where} does not have exactly one note, its version"
        )
    elif _own(notes[0], "NOTETYPE") != "SOFTWARE VERSION":
        yield _error("CSIP16", f"the note of the creator in {where} is not of the NOTETYPE SOFTWARE VERSION")


def _check_sections(root: etree._Element, where: str, folders: Collection[str]) -> Iterator[Finding]:
    """Descriptive and administrative metadata."""
    described = root.findall(f"{{{METS}}}dmdSec")
    administrative = root.find(f"{{{METS}}}amdSec")
    provenance = root.findall(f"{{{METS}}}amdSec/{{{METS}}}digiprovMD")
    for sections, folder, element, number in (
        (described, "descriptive", "dmdSec", "CSIP17"),
        ([] if administrative is None else [administrative], "preservation", "amdSec", "CSIP31"),
        (provenance, "preservation", "digiprovMD", "CSIP32"),
    ):
        is_there = f"metadata/{folder}" in folders
        if is_there and not sections and "/" not in where:
            yield _error(number, f"there are files in metadata/{folder}, but {where} has no {element}")
        elif not sections:
            yield _warning(number, f"{where} has no {element}")
        elif not is_there:
            yield _warning(number, f"{where} has {element}, but there are no files in metadata/{folder}")
    for each in described:
        if not each.get("CREATED", "").strip():
            yield _error("CSIP19", f"a dmdSec of {where} has no CREATED")
    has_reference = any(each.find(f"{{{METS}}}mdRef") is not None for each in described)
    if described and "metadata/descriptive" in folders and not has_reference:
        yield _error(
            "CSIP21", f"there are files in metadata/descriptive, but no dmdSec of {where} has an mdRef"
        )
    rights = root.findall(f"{{{METS}}}amdSec/{{{METS}}}rightsMD")
    for section, elements in (("dmdSec", described), ("digiprovMD", provenance), ("rightsMD", rights)):
        for each in elements:
            yield from _check_section(each, section, where)


def _check_section(element: etree._Element, section: str, where: str) -> Iterator[Finding]:
    status, number = element.get("STATUS"), _STATUS[section]
    what = f"the {section} {element.get('ID', '')[:60]!r} of {where}"
    if status is None:
        yield _warning(number, f"{what} has no STATUS")
    elif status not in ("CURRENT", "SUPERSEDED"):
        yield _error(number, f"the STATUS of {what} is {status[:40]!r}, not CURRENT or SUPERSEDED")
    reference = element.find(f"{{{METS}}}mdRef")
    if reference is None:
        if section != "dmdSec":
            yield _warning("CSIP35" if section == "digiprovMD" else "CSIP48", f"{what} has no mdRef")
        return
    first = _FIRST_NUMBERS[section]
    for offset, name in enumerate(_REFERENCE):
        full, number = f"{{{XLINK}}}{name}" if name in ("type", "href") else name, f"CSIP{first + offset}"
        if name == "href" and reference.get(full) == "":
            yield _warning(number, f"the href of {what} is empty")
        else:
            yield from _check_fact(reference, full, number, what)


def _check_fact(element: etree._Element, name: str, number: str, what: str) -> Iterator[Finding]:
    """One attribute of a file or reference: that it is there, and its vocabulary."""
    value, shown = element.get(name, "").strip(), name.rpartition("}")[2]
    expected = {"LOCTYPE": "URL", f"{{{XLINK}}}type": "simple"}.get(name)
    if not value:
        yield _error(number, f"{what} has no {shown}")
    elif expected and value != expected:
        yield _error(number, f"the {shown} of {what} is {value[:40]!r}, not {expected}")
    elif name == "MIMETYPE" and (len(value) > 256 or not _MEDIA_TYPE.fullmatch(value)):
        yield _warning(number, f"the MIMETYPE of {what}, {value[:60]!r}, is not a media type")


def _check_files(
    root: etree._Element, section: etree._Element, where: str, folders: Collection[str]
) -> Iterator[Finding]:
    if not section.get("ID", "").strip():
        yield _error("CSIP59", f"the file section of {where} has no ID")
    administrative = {each.get("ID") for part in root.iterfind(f"{{{METS}}}amdSec") for each in (part, *part)}
    groups = section.findall(f"{{{METS}}}fileGrp")
    for group in groups:
        what = f"the file group {(group.get('ID') or group.get('USE', ''))[:60]!r} of {where}"
        for name, number in (("USE", "CSIP64"), ("ID", "CSIP65")):
            if not group.get(name, "").strip():
                yield _error(number, f"{what} has no {name}")
        yield from _check_use(group.get("USE", ""), what, folders)
        if unknown := set(group.get("ADMID", "").split()) - administrative:
            yield _warning("CSIP61", f"{what} refers to {min(unknown)[:60]!r}, which is not in amdSec")
        is_content = group.get("USE", "").lower().startswith("representations")
        if (
            is_content
            and not _own(group, "CONTENTINFORMATIONTYPE")
            and _own(root, "CONTENTINFORMATIONTYPE") != "MIXED"
        ):
            yield _warning("CSIP62", f"{what} has no CONTENTINFORMATIONTYPE")
        yield from _check_content_type(group, what, ("CSIP62", "CSIP63", "CSIP63"))
        files = group.findall(f".//{{{METS}}}file")
        if not files:
            yield _error("CSIP66", f"{what} has no file")
        for file in files:
            yield from _check_file(file, where)
    uses = {group.get("USE", "").lower().partition("/")[0] for group in groups}
    for use, number in _MUST_BE_GROUPS:
        if use.lower() not in uses:
            yield _warning(number, f"{where} has no file group with the USE {use}")


def _check_use(use: str, what: str, folders: Collection[str]) -> Iterator[Finding]:
    if use and not _GROUPS.fullmatch(use):
        yield _warning("CSIP64", f"the USE of {what}, {use[:60]!r}, is not in the vocabulary")
    elif use.lower().startswith("representations/") and use.lower().rstrip("/") not in folders:
        yield _error("CSIP64", f"the USE of {what}, {use[:60]!r}, is not a folder of the package")


def _check_file(file: etree._Element, where: str) -> Iterator[Finding]:
    what = f"the file {file.get('ID', '')[:100]!r} of {where}"
    for name, number in _FILE.items():
        yield from _check_fact(file, name, number, what)
    places = file.findall(f"{{{METS}}}FLocat")
    if len(places) != 1:
        yield _error("CSIP76", f"{what} has {len(places) or 'no'} FLocat instead of one")
    for place in places[:1]:
        for name, number in (
            ("LOCTYPE", "CSIP77"),
            (f"{{{XLINK}}}type", "CSIP78"),
            (f"{{{XLINK}}}href", "CSIP79"),
        ):
            yield from _check_fact(place, name, number, what)


def _check_structure(
    root: etree._Element, map_: etree._Element, where: str, names: Collection[str]
) -> Iterator[Finding]:
    if map_.get("TYPE") != "PHYSICAL":
        yield _error("CSIP81", f"the structural map of {where} is not of the TYPE PHYSICAL")
    if not map_.get("ID", "").strip():
        yield _error("CSIP83", f"the structural map of {where} has no ID")
    top = map_.find(f"{{{METS}}}div")
    if top is None:
        yield _error("CSIP84", f"the structural map of {where} has no division")
        return
    if not top.get("ID", "").strip():
        yield _error("CSIP85", f"the main division of {where} has no ID")
    if not top.get("LABEL", "").strip():
        yield _warning("CSIP86", f"the main division of {where} has no LABEL")
    elif top.get("LABEL") != root.get(
        "OBJID"
    ):  # also in packages that the specification's authors call valid
        yield _warning("CSIP86", f"the LABEL of the main division of {where} is not the OBJID of {where}")
    divisions = top.findall(f"{{{METS}}}div")
    yield from _check_metadata_division(root, divisions, where)
    for label, number, references in _DIVISIONS:
        yield from _check_division(root, divisions, label, number, references, where)
    yield from _check_pointers(divisions, where, names)
    known = {element.get("ID") for element in root.iter() if element.get("ID")}
    for pointer in map_.iter(f"{{{METS}}}fptr"):
        if pointer.get("FILEID") not in known:
            target = pointer.get("FILEID", "")[:100]
            yield _error(
                "CSIP116, CSIP118, CSIP119", f"the structural map points to {target!r}, which does not exist"
            )


def _check_metadata_division(
    root: etree._Element, divisions: list[etree._Element], where: str
) -> Iterator[Finding]:
    metadata_divisions = [each for each in divisions if each.get("LABEL") == "Metadata"]
    if len(metadata_divisions) != 1:
        yield _error(
            "CSIP88, CSIP90",
            f"{where} has {len(metadata_divisions) or 'no'} divisions Metadata instead of one",
        )
        return
    for name, paths, number in (
        ("ADMID", ("amdSec/{ns}digiprovMD", "amdSec/{ns}rightsMD"), "CSIP91"),
        ("DMDID", ("dmdSec",), "CSIP92"),
    ):
        sections = [
            each for path in paths for each in root.iterfind(f"{{{METS}}}{path.format(ns=f'{{{METS}}}')}")
        ]
        listed = set(metadata_divisions[0].get(name, "").split())
        # Some refer to the whole amdSec instead of to each part of it.
        missing = [
            each
            for each in sections
            if each.get("ID") not in listed
            and (parent := each.getparent()) is not None
            and (parent.tag == root.tag or parent.get("ID") not in listed)
        ]
        if missing:
            identifier = missing[0].get("ID", "")[:60]
            yield _warning(
                number, f"the division Metadata of {where} does not refer to {identifier!r} ({name})"
            )
        known = {each.get("ID") for each in sections} | {
            each.get("ID") for each in root.iterfind(f"{{{METS}}}amdSec") if name == "ADMID"
        }
        if wrong := listed - known:
            yield _error(
                number, f"the division Metadata of {where} refers to {min(wrong)[:60]!r} ({name}), "
                "which is not a section of that kind",
            )  # fmt: skip


def _check_division(
    root: etree._Element,
    divisions: list[etree._Element],
    label: str,
    number: str,
    references: str,
    where: str,
) -> Iterator[Finding]:
    """A division for documentation, schemas or content, with a pointer to each file group of that use."""
    start = label.lower()
    own = [each for each in divisions if each.get("LABEL", "").lower() == start]
    deeper = [each for each in divisions if each.get("LABEL", "").lower().startswith(f"{start}/")]
    if len(own) > 1:
        yield _error(number, f"{where} has {len(own)} divisions {label}")
    elif not own and not deeper:
        yield _warning(number, f"{where} has no division {label}")
    groups = {
        group.get("ID", ""): group.get("USE", "").lower()
        for group in root.iterfind(f"{{{METS}}}fileSec/{{{METS}}}fileGrp")
    }
    wanted = {name for name, use in groups.items() if use.partition("/")[0] == start}
    pointed = {name for each in divisions for name in _pointed(each)}
    if wanted - pointed:
        missing = min(wanted - pointed)
        yield _warning(
            references, f"the structural map of {where} does not list the file group {missing[:60]!r}"
        )
    wrong = {name for each in own for name in _pointed(each)} & groups.keys() - wanted
    if wrong:
        yield _error(references, f"the division {label} of {where} refers to {min(wrong)[:60]!r}")


def _pointed(division: etree._Element) -> Iterator[str]:
    """The file groups and files that a division refers to."""
    yield from (each.get("FILEID", "") for each in division.iter(f"{{{METS}}}fptr"))
    yield from (each.get(f"{{{XLINK}}}title", "") for each in division.iter(f"{{{METS}}}mptr"))


def _check_pointers(divisions: list[etree._Element], where: str, names: Collection[str]) -> Iterator[Finding]:
    """Pointers to the METS files of representations."""
    pointed = set()
    for division in divisions:
        label = division.get("LABEL", "")
        for pointer in division.iterfind(f"{{{METS}}}mptr"):
            what = f"the pointer of the division {label[:60]!r} of {where}"
            href = pointer.get(f"{{{XLINK}}}href", "")
            for name, number in (
                (f"{{{XLINK}}}href", "CSIP110"),
                (f"{{{XLINK}}}type", "CSIP111"),
                ("LOCTYPE", "CSIP112"),
            ):
                yield from _check_fact(pointer, name, number, what)
            path = re.sub(r"^file:(?://)?", "", href).replace("\\", "/").removeprefix("./")
            pointed.add(path.lower())
            if path and path not in names:
                yield _error(
                    "CSIP105, CSIP107", f"{what} refers to {path[:100]!r}, which is not in the package"
                )
            if label and not path.lower().startswith(label.lower().rstrip("/")):
                yield _error("CSIP110", f"{what} refers to {path[:100]!r}, which is not below its LABEL")
    for name in sorted(names):
        if re.fullmatch(r"representations/[^/]+/METS\.xml", name) and name.lower() not in pointed:
            yield _warning("CSIP105, CSIP107", f"the structural map of {where} does not mention {name[:100]}")


def _plain(text: str) -> str:
    """A term with single spaces and hyphens, without regard to case."""
    return " ".join(text.lower().replace("\u2013", "-").replace("\u2014", "-").split())


def _own(element: etree._Element, name: str) -> str:
    """An attribute of any namespace."""
    return next((str(value).strip() for key, value in element.items() if key.rpartition("}")[2] == name), "")


def _finding(severity: Severity) -> Callable[[str, str], Finding]:
    def finding(number: str, message: str) -> Finding:
        return Finding(
            code=number.partition(",")[0],
            severity=severity,
            subject="METS.xml",
            message=f"{number}: {message}",
        )

    return finding


_error, _warning = _finding(Severity.ERROR), _finding(Severity.WARNING)
