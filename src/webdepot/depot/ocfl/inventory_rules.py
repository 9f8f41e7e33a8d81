"""The rules of OCFL 1.0 and 1.1 for one inventory, as pure functions on the JSON document.

https://ocfl.io/1.1/spec/#inventory. Each finding has the code of the specification
(https://ocfl.io/1.1/spec/validation-codes.html) as `ocfl.E049`. `validation` checks the files of an object.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from webdepot.model import Finding, Severity

ALGORITHMS = {"sha512": 128, "sha256": 64}
"""Algorithms for manifests, and the length of their digests in hexadecimal digits."""
DEFAULT_CONTENT = "content"
TYPE = re.compile(r"https://ocfl\.io/(1\.[01])/spec/#inventory")
VERSION_NAME = re.compile(r"v(0*)([1-9][0-9]{0,9})")
_KEYS = {"id", "type", "digestAlgorithm", "head", "contentDirectory", "manifest", "versions", "fixity"}
_VERSION_KEYS = {"created", "message", "user", "state"}
_CREATED = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)"
    r"(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_HEX = re.compile(r"[0-9A-Fa-f]+")

Document = Mapping[str, Any]


def check(document: Any, where: str) -> Iterator[Finding]:
    """One finding for each rule that an inventory breaks; `where` is its path, for the messages."""
    if not isinstance(document, dict):
        yield error("E033", where, f"{where} is not a JSON object")
        return
    for key in sorted(document.keys() - _KEYS):
        yield error("E102", where, f"{where} has the key {key[:100]!r}, which is not in the specification")
    for key in ("id", "type", "digestAlgorithm", "head"):
        if key not in document:
            yield error("E036", where, f"{where} has no {key}")
    yield from _check_head_keys(document, where)
    yield from _check_manifest(document, where)
    yield from _check_versions(document, where)
    yield from _check_fixity(document, where)


def digest_length(document: Document) -> int:
    """The length of the digests in manifest and state."""
    return ALGORITHMS.get(str(document.get("digestAlgorithm")), 0)


def content_directory(document: Document) -> str:
    name = document.get("contentDirectory", DEFAULT_CONTENT)
    return name if isinstance(name, str) else DEFAULT_CONTENT


def number_of(name: str) -> int:
    """The number of a version folder; 0 if it is not the name of one."""
    match = VERSION_NAME.fullmatch(name)
    return int(match[2]) if match else 0


def block(document: Document, key: str) -> dict[str, Any]:
    """A block of the inventory; empty if it is not there, or not a JSON object."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def paths_of(value: Any) -> list[str]:
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []


def logical_files(document: Document, version: str) -> dict[str, str]:
    """Logical path to digest (in lower case) in a version."""
    entry = block(document, "versions").get(version)
    state = entry.get("state") if isinstance(entry, dict) else None
    return {
        path: digest.lower()
        for digest, paths in (state.items() if isinstance(state, dict) else ())
        for path in paths_of(paths)
    }


def content_digests(document: Document) -> dict[str, str]:
    """Content path to digest (in lower case)."""
    return {
        path: digest.lower()
        for digest, paths in block(document, "manifest").items()
        for path in paths_of(paths)
    }


def _check_head_keys(document: Document, where: str) -> Iterator[Finding]:
    identifier = document.get("id", "urn:none")
    if not isinstance(identifier, str) or not identifier:
        yield error("E037", where, f"the id of {where} is not a string")
    elif not _URI.fullmatch(identifier):
        yield warning("W005", where, f"the id {identifier[:100]!r} is not a URI")
    kind = document.get("type", "")
    if "type" in document and not (isinstance(kind, str) and TYPE.fullmatch(kind)):
        yield error(
            "E038", where, f"the type of {where} is {str(kind)[:100]!r}, which is not OCFL 1.0 or 1.1"
        )
    algorithm = document.get("digestAlgorithm", "sha512")
    if algorithm not in ALGORITHMS:
        yield error(
            "E025", where, f"the digest algorithm of {where} is {str(algorithm)[:50]!r}, not sha512 or sha256"
        )
    elif algorithm != "sha512":
        yield warning("W004", where, f"{where} uses {algorithm} instead of sha512")
    content = document.get("contentDirectory", DEFAULT_CONTENT)
    if not isinstance(content, str) or "/" in content or not content:
        yield error(
            "E017",
            where,
            f"the contentDirectory of {where} is not the name of a folder: {str(content)[:100]!r}",
        )
    elif content in (".", ".."):
        yield error("E018", where, f"the contentDirectory of {where} is {content!r}")


def _check_manifest(document: Document, where: str) -> Iterator[Finding]:
    if "manifest" not in document:
        yield error("E041", where, f"{where} has no manifest")
        return
    manifest = document["manifest"]
    if not isinstance(manifest, dict):
        yield error("E106", where, f"the manifest of {where} is not a JSON object")
        return
    yield from _check_digests(manifest, digest_length(document), where, "manifest", duplicate="E096")
    yield from _check_content_paths(manifest, where, "manifest", not_a_list="E092")
    names = set(block(document, "versions"))
    inside = f"/{content_directory(document)}/"
    for path in content_digests(document):
        version, slash, rest = path.partition("/")
        if names and (version not in names or not f"{slash}{rest}".startswith(inside)) and _is_clean(path):
            yield error(
                "E042", where, f"{path[:200]!r} in the manifest of {where} is not in the content of a version"
            )


def _check_digests(
    digests: Iterable[str], length: int, where: str, name: str, *, duplicate: str
) -> Iterator[Finding]:
    seen: set[str] = set()
    for digest in digests:
        if length and (len(digest) != length or not _HEX.fullmatch(digest)):
            code = "E031" if length == ALGORITHMS["sha512"] else "E030"
            yield error(
                code, where, f"{digest[:140]!r} in the {name} of {where} is not a digest of {length} digits"
            )
        if digest.lower() in seen:
            yield error(duplicate, where, f"the digest {digest[:20]}… is in the {name} of {where} twice")
        seen.add(digest.lower())


def _check_content_paths(
    block_: Mapping[str, Any], where: str, name: str, *, not_a_list: str
) -> Iterator[Finding]:
    every: list[str] = []
    for digest, paths in block_.items():
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            yield error(
                not_a_list, where, f"{digest[:20]}… in the {name} of {where} does not have a list of paths"
            )
        every += paths_of(paths)
    for path in every:
        if path.startswith("/") or path.endswith("/"):
            yield error("E100", where, f"{path[:200]!r} in the {name} of {where} begins or ends with a slash")
        if {"", ".", ".."} & set(path.strip("/").split("/")):
            yield error("E099", where, f"{path[:200]!r} in the {name} of {where} has an empty part, . or ..")
    yield from _check_conflicts(every, where, name, "E101")


def _check_conflicts(paths: Iterable[str], where: str, name: str, code: str) -> Iterator[Finding]:
    """Paths must be unique, and none may be a folder of another."""
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if path in seen:
            yield error(code, where, f"{path[:200]!r} is in the {name} of {where} twice")
        seen.add(path)
        steps = path.split("/")
        folders.update("/".join(steps[:count]) for count in range(1, len(steps)))
    for path in sorted(seen & folders):
        yield error(code, where, f"{path[:200]!r} in the {name} of {where} is a file and a folder")


def _check_versions(document: Document, where: str) -> Iterator[Finding]:
    if "versions" not in document:
        yield error("E043", where, f"{where} has no versions")
        return
    versions = document["versions"]
    if not isinstance(versions, dict):
        yield error("E044", where, f"the versions of {where} are not a JSON object")
        return
    if not versions:
        yield error("E008", where, f"{where} has no version")
    yield from _check_names(document, versions, where)
    for name, version in versions.items():
        yield from _check_version(document, name, version, where)
    if not str(document.get("type", "")).startswith("https://ocfl.io/1.0/"):
        used = {
            digest.lower()
            for version in versions.values()
            if isinstance(version, dict) and isinstance(version.get("state"), dict)
            for digest in version["state"]
        }
        for digest in block(document, "manifest"):
            if digest.lower() not in used:
                yield error(
                    "E107",
                    where,
                    f"the digest {digest[:20]}… in the manifest of {where} is used by no version",
                )


def _check_names(document: Document, versions: Mapping[str, Any], where: str) -> Iterator[Finding]:
    numbers = {name: number_of(name) for name in versions}
    for name, number in numbers.items():
        if not number:
            yield error(
                "E046", where, f"{name[:50]!r} in the versions of {where} is not the name of a version folder"
            )
    known = sorted(number for number in numbers.values() if number)
    if known and known[0] != 1:
        yield error("E009", where, f"the versions of {where} begin with {known[0]}, not with 1")
    elif known and known != list(range(1, len(known) + 1)):
        missing = sorted(set(range(1, min(known[-1], 10_000))) - set(known))[:5]
        yield error(
            "E010", where, f"versions are missing in {where}: {', '.join(map(str, missing)) or known[-1]}"
        )
    padded = {name for name in versions if number_of(name) and name.startswith("v0")}
    if padded:
        if len({len(name) for name in versions}) > 1:
            yield error("E012", where, f"the version folders in {where} are not padded to the same length")
        if not all(name.startswith("v0") for name in versions if number_of(name)):
            yield error("E011", where, f"a padded version folder in {where} does not begin with v0")
            yield error(
                "E013", where, f"a later version in {where} does not follow the names of earlier ones"
            )
        yield warning("W001", where, f"the version folders in {where} have zeros before their numbers")
    head = document.get("head", "")
    if "head" in document and (not isinstance(head, str) or not known or number_of(head) != known[-1]):
        yield error("E040", where, f"the head of {where} is {str(head)[:50]!r}, not the newest version")
    elif "head" in document and head not in versions:
        yield error("E040", where, f"the head of {where} is {head[:50]!r}, which is not among its versions")


def _check_version(document: Document, name: str, version: Any, where: str) -> Iterator[Finding]:
    here = f"version {name[:20]} of {where}"
    if not isinstance(version, dict):
        yield error("E047", where, f"{here} is not a JSON object")
        return
    for key in sorted(version.keys() - _VERSION_KEYS):
        yield error("E102", where, f"{here} has the key {key[:100]!r}, which is not in the specification")
    for key in ("created", "state"):
        if key not in version:
            yield error("E048", where, f"{here} has no {key}")
    created = version.get("created", "2000-01-01T00:00:00Z")
    if not isinstance(created, str) or not _CREATED.fullmatch(created):
        yield error(
            "E049",
            where,
            f"{here} was created at {str(created)[:50]!r}, which is not an RFC 3339 time with a zone",
        )
    if "message" in version and not isinstance(version["message"], str):
        yield error("E094", where, f"the message of {here} is not a string")
    yield from _check_user(version, here, where)
    if "state" in version:
        yield from _check_state(document, version["state"], here, where)


def _check_user(version: Mapping[str, Any], here: str, where: str) -> Iterator[Finding]:
    if "message" not in version or "user" not in version:
        yield warning("W007", where, f"{here} has no message or no user")
    if "user" not in version:
        return
    user = version["user"]
    if not isinstance(user, dict) or not isinstance(user.get("name"), str) or not user["name"]:
        yield error("E054", where, f"the user of {here} has no name")
    elif not user.get("address"):
        yield warning("W008", where, f"the user of {here} has no address")
    elif not isinstance(user["address"], str) or not _URI.fullmatch(user["address"]):
        yield warning("W009", where, f"the address of the user of {here} is not a URI")


def _check_state(document: Document, state: Any, here: str, where: str) -> Iterator[Finding]:
    if not isinstance(state, dict):
        yield error("E050", where, f"the state of {here} is not a JSON object")
        return
    manifest = block(document, "manifest")
    every: list[str] = []
    for digest, paths in state.items():
        if digest not in manifest:
            yield error("E050", where, f"{here} has the digest {digest[:20]}…, which is not in the manifest")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            yield error("E051", where, f"{digest[:20]}… in {here} does not have a list of paths")
        every += paths_of(paths)
    for path in every:
        if path.startswith("/") or path.endswith("/"):
            yield error("E053", where, f"{path[:200]!r} in {here} begins or ends with a slash")
        if {"", ".", ".."} & set(path.strip("/").split("/")):
            yield error("E052", where, f"{path[:200]!r} in {here} has an empty part, . or ..")
    yield from _check_conflicts(every, where, f"state of {here}", "E095")


def _check_fixity(document: Document, where: str) -> Iterator[Finding]:
    if "fixity" not in document:
        return
    fixity = document["fixity"]
    if not isinstance(fixity, dict):
        yield error("E111", where, f"the fixity block of {where} is not a JSON object")
        return
    known = content_digests(document)
    for algorithm, digests in fixity.items():
        name = f"fixity block ({algorithm[:20]})"
        if not isinstance(digests, dict):
            yield error("E057", where, f"the {name} of {where} is not a JSON object")
            continue
        yield from _check_digests(digests, 0, where, name, duplicate="E097")
        yield from _check_content_paths(digests, where, name, not_a_list="E057")
        for path in (path for paths in digests.values() for path in paths_of(paths)):
            if path not in known and _is_clean(path):
                yield error("E057", where, f"{path[:200]!r} in the {name} of {where} is not in the manifest")


def _is_clean(path: str) -> bool:
    """Whether a path breaks no rule about its own form."""
    return not {"", ".", ".."} & set(path.split("/"))


def error(code: str, subject: str, message: str) -> Finding:
    return Finding(
        code=f"ocfl.{code}", severity=Severity.ERROR, subject=subject, message=f"{code}: {message}"
    )


def warning(code: str, subject: str, message: str) -> Finding:
    return Finding(
        code=f"ocfl.{code}", severity=Severity.WARNING, subject=subject, message=f"{code}: {message}"
    )
