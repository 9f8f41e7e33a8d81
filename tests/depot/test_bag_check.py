"""Bags of others, BagIt 0.93 to 1.0: each kind of fault has its own code and sentence. The cases follow those of
the conformance suite of the Library of Congress, rewritten here.
"""

import hashlib
import unicodedata
from pathlib import Path

import bagit
import pytest

from webdepot.depot.bundle import bag_check
from webdepot.model import Severity

HELLO = b"hello\n"
EMPTY = hashlib.sha512(b"").hexdigest()


def line(data: bytes, name: str, *, algorithm: str = "sha512", between: str = "  ") -> str:
    return f"{hashlib.new(algorithm, data).hexdigest()}{between}{name}\n"


def make(folder: Path, *, version: str = "0.97", encoding: str = "UTF-8", **tags: str | bytes) -> Path:
    """A valid bag with data/hello.txt; `tags` replaces tag files (`manifest_sha512`), None removes one."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "hello.txt").write_bytes(HELLO)
    files: dict[str, str | bytes | None] = {
        "bagit.txt": f"BagIt-Version: {version}\nTag-File-Character-Encoding: {encoding}\n".encode(),
        "manifest-sha512.txt": line(HELLO, "data/hello.txt"),
        "bag-info.txt": "Source-Organization: A library\nPayload-Oxum: 6.1\n",
    }
    files |= {name.replace("__", ".").replace("_", "-") + ".txt": text for name, text in tags.items()}
    for name, text in files.items():
        if text is not None:
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return folder


def verdict(folder: Path) -> tuple[set[str], set[str]]:
    """The codes of errors and of warnings."""
    findings = list(bag_check.check(folder))
    assert all(finding.message and not finding.message.endswith(".") for finding in findings)
    errors = {each.code.removeprefix("bag.") for each in findings if each.severity is Severity.ERROR}
    return errors, {each.code.removeprefix("bag.") for each in findings} - errors


@pytest.mark.parametrize("version", ["0.93", "0.94", "0.95", "0.96", "0.97", "1.0"])
def test_a_good_bag_of_every_version(tmp_path, version):
    assert verdict(make(tmp_path / "bag", version=version)) == (set(), set())


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "windows-1252"])
def test_tag_files_in_other_encodings(tmp_path, encoding):
    assert verdict(make(tmp_path / "bag", encoding=encoding)) == (set(), set())


DECLARED = b"BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n"
TWICE = line(HELLO, "data/hello.txt") * 2
BAD = {
    "no declaration": ({"bagit": None}, "no-declaration"),
    "no encoding": ({"bagit": b"BagIt-Version: 0.97\n"}, "declaration"),
    "byte order mark": ({"bagit": b"\xef\xbb\xbf" + DECLARED}, "declaration"),
    "space before the colon in 1.0": (
        {"bagit": b"BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n"},
        "declaration",
    ),
    "version without a number": ({"bagit": DECLARED.replace(b"0.97", b".97")}, "declaration"),
    "unknown version": ({"bagit": DECLARED.replace(b"0.97", b"2.0")}, "version"),
    "unknown encoding": ({"bagit": DECLARED.replace(b"UTF-8", b"rot13")}, "encoding"),
    "no manifest": ({"manifest_sha512": None}, "no-manifest"),
    "only an unknown algorithm": (
        {"manifest_sha512": None, "manifest_crc99": "00 data/hello.txt\n"},
        "no-manifest",
    ),
    "damaged payload": ({"manifest_sha512": line(b"other", "data/hello.txt")}, "damaged"),
    "damaged tag file": ({"tagmanifest_md5": line(b"x", "bag-info.txt", algorithm="md5")}, "damaged"),
    "missing tag file": ({"tagmanifest_md5": line(b"x", "notes.txt", algorithm="md5")}, "missing"),
    "missing payload": (
        {"manifest_sha512": line(HELLO, "data/hello.txt") + line(b"", "data/b.txt")},
        "missing",
    ),
    "not listed": ({"manifest_sha512": ""}, "not-listed"),
    "two checksums": (
        {"manifest_sha512": line(HELLO, "data/hello.txt") + line(b"x", "data/hello.txt")},
        "twice",
    ),
    "twice in 1.0": ({"version": "1.0", "manifest_sha512": TWICE}, "twice"),
    "one of two manifests incomplete in 1.0": ({"version": "1.0", "manifest_sha256": ""}, "not-listed"),
    "short checksum": ({"manifest_sha512": "abc  data/hello.txt\n"}, "line"),
    "leads out": ({"manifest_sha512": line(HELLO, "data/../../secret")}, "outside"),
    "absolute": ({"manifest_sha512": line(HELLO, "/etc/passwd")}, "outside"),
    "home": ({"manifest_sha512": line(HELLO, "~/foo")}, "outside"),
    "home of a user": ({"manifest_sha512": line(HELLO, "~root/foo")}, "outside"),
    "drive": ({"manifest_sha512": line(HELLO, "C:\\Windows\\setx.exe")}, "outside"),
    "server": ({"manifest_sha512": line(HELLO, "\\\\?\\UNC\\server\\setx.exe")}, "outside"),
    "payload in a tag manifest": (
        {"tagmanifest_md5": line(HELLO, "data/hello.txt", algorithm="md5")},
        "outside",
    ),
    "fetch leads out": ({"fetch": "http://a.example/x - ../../x\n"}, "fetch"),
    "fetch to a home": ({"fetch": "http://a.example/x - ~/x\n"}, "fetch"),
    "fetch is not a list": ({"fetch": "nonsense\n"}, "fetch"),
    "fetch with another size": ({"fetch": "http://a.example/x 7 data/hello.txt\n"}, "fetch"),
    "not fetched": ({"fetch": "http://a.example/x - data/far.txt\n"}, "not-fetched"),
    "oxum differs": ({"bag_info": "Payload-Oxum: 7.1\n"}, "oxum"),
    "oxum is not one": ({"bag_info": "Payload-Oxum: many\n"}, "oxum"),
    "oxum twice in 1.0": ({"version": "1.0", "bag_info": "Payload-Oxum: 6.1\n" * 2}, "oxum"),
    "info is not a list": ({"bag_info": "just words\n"}, "info"),
    "not in its encoding": ({"bag_info": b"Contact-Name: \xff\n"}, "not-encoded"),
}


@pytest.mark.parametrize("case", BAD)
def test_each_fault_is_an_error_of_its_own_kind(tmp_path, case):
    how, code = BAD[case]
    errors, _ = verdict(make(tmp_path / "bag", **how))
    assert code in errors


def test_without_a_payload_and_with_a_link(tmp_path):
    folder = make(tmp_path / "bag")
    (folder / "data" / "link").symlink_to("/etc/passwd")
    assert {"link", "not-listed"} <= verdict(folder)[0]
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "bagit.txt").write_bytes(DECLARED)
    assert verdict(bare) == ({"no-payload"}, set())


WARNED = {
    "md5sum": ({"manifest_sha512": line(HELLO, "data/hello.txt", between=" *")}, "asterisk"),
    "relative": ({"manifest_sha512": line(HELLO, "./data/hello.txt")}, "dot-slash"),
    "twice the same": ({"manifest_sha512": TWICE}, "twice"),
    "other case": (
        {"manifest_sha512": line(HELLO, "data/hello.txt") + line(HELLO, "data/HELLO.txt")},
        "name-differs",
    ),
    "fetched already": ({"fetch": "http://a.example/x 6 data/hello.txt\n"}, "fetch"),
    "system file lost": (
        {"manifest_sha512": line(HELLO, "data/hello.txt") + f"{EMPTY}  data/.DS_Store\n"},
        "system-file",
    ),
    "unknown algorithm beside a known one": ({"manifest_crc99": "00 data/hello.txt\n"}, "algorithm"),
    "tag manifests differ": (
        {"tagmanifest_md5": line(DECLARED, "bagit.txt", algorithm="md5"), "tagmanifest_sha1": ""},
        "tag-manifests-differ",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_what_others_stumble_over_is_a_warning(tmp_path, case):
    how, code = WARNED[case]
    errors, warnings = verdict(make(tmp_path / "bag", **how))
    assert (errors, code in warnings) == (set(), True)


def test_names_in_another_normalisation_and_with_percent_signs(tmp_path):
    folder = make(tmp_path / "bag", bag_info=None)
    plain = "data/Núñez"
    (folder / plain).write_bytes(HELLO)
    (folder / "data" / "%7Etest.txt").write_bytes(HELLO)
    (folder / "data" / "line\nend.txt").write_bytes(HELLO)
    listed = [
        "data/hello.txt",
        unicodedata.normalize("NFD", plain),
        "data/%7Etest.txt",
        "data/line%0Aend.txt",
    ]
    (folder / "manifest-sha512.txt").write_text("".join(line(HELLO, name) for name in listed))
    assert verdict(folder) == (set(), {"name-differs"})


def test_a_bag_of_the_reference_implementation(tmp_path):
    (tmp_path / "bag" / "deep").mkdir(parents=True)
    (tmp_path / "bag" / "deep" / "100 %.txt").write_bytes(HELLO)
    bagit.make_bag(str(tmp_path / "bag"), {"Contact-Name": "Ä"}, checksums=["md5", "sha512"])
    assert verdict(tmp_path / "bag") == (set(), set())
