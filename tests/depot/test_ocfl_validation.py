"""OCFL objects of others, 1.0 and 1.1: each rule that files can break has its code. The cases follow the fixtures
of the OCFL editors, rewritten here, and add the codes that those do not cover.
"""

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ocfl
import pytest

from webdepot.depot.ocfl import validation
from webdepot.depot.ocfl.inventory_rules import check as check_inventory
from webdepot.model import Severity

FILES = {"v1/content/a.txt": b"one", "v1/content/sub/b.txt": b"two", "v2/content/c.txt": b"three"}


def digest(data: bytes, algorithm: str = "sha512") -> str:
    return hashlib.new(algorithm, data).hexdigest()


def inventory(head: int = 2, *, spec: str = "1.1") -> dict[str, Any]:
    one, two, three = map(digest, FILES.values())
    user = {"name": "Anna Mol", "address": "mailto:anna@example.org"}
    versions = {
        "v1": {"created": "2024-01-01T00:00:00Z", "message": "First", "user": user, "state": {one: ["a.txt"], two: ["sub/b.txt"]}},
        "v2": {"created": "2024-02-01T00:00:00.5+01:00", "message": "Second", "user": user, "state": {one: ["a.txt", "copy.txt"], three: ["c.txt"]}},
    }  # fmt: skip
    return {
        "id": "urn:example:1",
        "type": f"https://ocfl.io/{spec}/spec/#inventory",
        "digestAlgorithm": "sha512",
        "head": f"v{head}",
        "manifest": {digest(data): [path] for path, data in FILES.items() if int(path[1]) <= head},
        "versions": {name: versions[name] for name in list(versions)[:head]},
    }


def put(folder: Path, document: Any, *, algorithm: str = "sha512") -> None:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    (folder / "inventory.json").write_bytes(data)
    (folder / f"inventory.json.{algorithm}").write_text(f"{digest(data, algorithm)} inventory.json\n")


def make(folder: Path, *, spec: str = "1.1", change: Callable[[dict[str, Any]], Any] | None = None) -> Path:
    """A valid object of two versions; `change` alters the root inventory and that of its newest version."""
    for path, data in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / f"0=ocfl_object_{spec}").write_text(f"ocfl_object_{spec}\n")
    newest = inventory(spec=spec)
    if change:
        change(newest)
    put(folder, newest)
    put(folder / "v2", newest)
    put(folder / "v1", inventory(1, spec=spec))
    return folder


def codes(folder: Path) -> tuple[set[str], set[str]]:
    findings = list(validation.check(folder))
    assert all(each.message.startswith(each.code[5:] + ": ") for each in findings)
    errors = {each.code[5:] for each in findings if each.severity is Severity.ERROR}
    return errors, {each.code[5:] for each in findings} - errors


@pytest.mark.parametrize("spec", ["1.0", "1.1"])
def test_a_good_object(tmp_path, spec):
    folder = make(tmp_path / "object", spec=spec)
    (folder / "logs").mkdir()
    (folder / "logs" / "anything.txt").write_text("x")
    assert codes(folder) == (set(), set())
    assert {name: path.read_bytes() for name, path in validation.head_files(folder).items()} == {
        "a.txt": b"one",
        "copy.txt": b"one",
        "c.txt": b"three",
    }


def test_an_object_of_another_implementation(tmp_path):
    source = tmp_path / "source" / "v1"
    source.mkdir(parents=True)
    (source / "a.txt").write_bytes(b"one")
    made = ocfl.Object(identifier="http://example.org/1")
    made.create(srcdir=str(source), metadata=ocfl.VersionMetadata(message="m", name="n", address="mailto:n@example.org"), objdir=str(tmp_path / "object"))  # fmt: skip
    assert codes(tmp_path / "object")[0] == set()


def in_version(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["versions"]["v2"].update(values)


def state(*paths: str) -> Callable[[dict[str, Any]], None]:
    return in_version(state={digest(b"one"): list(paths), digest(b"three"): ["c.txt"]})


def renamed(document: dict[str, Any]) -> None:
    document["versions"]["v3"] = document["versions"].pop("v2")
    document["head"] = "v3"


CHANGED = {
    "E009": lambda document: document["versions"].pop("v1"),
    "E010": renamed,
    "E012": lambda document: document["versions"].update(v003=document["versions"]["v2"]),
    "E017": lambda document: document.update(contentDirectory="a/b"),
    "E018": lambda document: document.update(contentDirectory=".."),
    "E025": lambda document: document.update(digestAlgorithm="md5"),
    "E031": lambda document: document["manifest"].update(abc=["v1/content/a.txt"]),
    "E036": lambda document: document.pop("id"),
    "E037": lambda document: document.update(id=7),
    "E038": lambda document: document.update(type="https://ocfl.io/1.0/spec/#inventory"),
    "E040": lambda document: document.update(head="v1"),
    "E041": lambda document: document.pop("manifest"),
    "E042": lambda document: document["manifest"].update({digest(b"one"): ["a.txt"]}),
    "E043": lambda document: document.pop("versions"),
    "E044": lambda document: document.update(versions=[]),
    "E046": lambda document: document["versions"].update(second=document["versions"]["v2"]),
    "E047": lambda document: document["versions"].update(v2="x"),
    "E048": lambda document: document["versions"]["v2"].pop("created"),
    "E049": in_version(created="2024-02-01T00:00:00"),
    "E050": in_version(state={digest(b"other"): ["a.txt"]}),
    "E051": in_version(state={digest(b"one"): "a.txt"}),
    "E052": state("a/../b"),
    "E053": state("/a.txt"),
    "E054": in_version(user={"address": "mailto:x@example.org"}),
    "E057": lambda document: document.update(fixity={"md5": []}),
    "E066": lambda document: document["versions"]["v1"]["state"].update({digest(b"one"): ["other.txt"]}),
    "E092": lambda document: document["manifest"].update({digest(b"one"): ["v1/content/absent.txt", "v1/content/a.txt"]}),
    "E093": lambda document: document.update(fixity={"md5": {"0" * 32: ["v1/content/a.txt"]}}),
    "E094": in_version(message=["x"]),
    "E095": state("a.txt", "a.txt/b"),
    "E096": lambda document: document["manifest"].update({digest(b"one").upper(): ["v1/content/a.txt"]}),
    "E097": lambda document: document.update(fixity={"md5": {digest(b"one", "md5"): ["v1/content/a.txt"], digest(b"one", "md5").upper(): []}}),
    "E099": lambda document: document["manifest"].update({digest(b"one"): ["v1/content/../content/a.txt"]}),
    "E100": lambda document: document["manifest"].update({digest(b"one"): ["/v1/content/a.txt"]}),
    "E101": lambda document: document["manifest"].update({digest(b"one"): ["v1/content/a.txt", "v1/content/a.txt"]}),
    "E102": lambda document: document.update(more=1),
    "E106": lambda document: document.update(manifest=[]),
    "E107": lambda document: document["manifest"].update({digest(b"x"): ["v1/content/a.txt"]}),
    "E110": lambda document: document.update(id="urn:example:2"),
    "E111": lambda document: document.update(fixity=[]),
}  # fmt: skip


@pytest.mark.parametrize("code", CHANGED)
def test_each_rule_of_inventories(tmp_path, code):
    assert code in codes(make(tmp_path / "object", change=CHANGED[code]))[0]


def older(**values: Any) -> Callable[[Path], None]:
    return lambda folder: put(folder / "v1", inventory(1) | values)


def padded(folder: Path) -> None:
    document = copy.deepcopy(inventory())
    document["versions"]["v02"] = document["versions"].pop("v2")
    put(folder, document | {"head": "v02"})


SPOILED = {
    "E001": lambda folder: (folder / "extra.txt").write_text("x"),
    "E003": lambda folder: (folder / "0=ocfl_object_1.1").unlink(),
    "E004": lambda folder: (folder / "0=ocfl_object_1.1").rename(folder / "0=ocfl_object_9"),
    "E007": lambda folder: (folder / "0=ocfl_object_1.1").write_text("ocfl_object_1.1"),
    "E008": lambda folder: put(folder, inventory() | {"versions": {}}),
    "E011": padded,
    "E013": padded,
    "E015": lambda folder: (folder / "v1" / "stray.txt").write_text("x"),
    "E019": older(contentDirectory="stuff"),
    "E020": older(contentDirectory="stuff"),
    "E023": lambda folder: (folder / "v1" / "content" / "stray.txt").write_text("x"),
    "E024": lambda folder: (folder / "v1" / "content" / "nothing").mkdir(),
    "E033": lambda folder: put(folder, b'{"id": 1, "id": 2}'),
    "E037": older(id="urn:example:2"),
    "E040": older(head="v2"),
    "E046": lambda folder: (folder / "v3").mkdir(),
    "E058": lambda folder: (folder / "v1" / "inventory.json.sha512").unlink(),
    "E060": lambda folder: (folder / "inventory.json.sha512").write_text(f"{'0' * 128} inventory.json\n"),
    "E061": lambda folder: (folder / "inventory.json.sha512").write_text("abc"),
    "E063": lambda folder: (folder / "inventory.json").unlink(),
    "E064": lambda folder: put(folder / "v2", inventory() | {"contentDirectory": "content"}),
    "E067": lambda folder: [(folder / "extensions").mkdir(), (folder / "extensions" / "x").write_text("x")],
    "E090": lambda folder: (folder / "v1" / "content" / "link").symlink_to("a.txt"),
    "E092": lambda folder: (folder / "v1" / "content" / "a.txt").write_bytes(b"damaged"),
}  # fmt: skip


@pytest.mark.parametrize("code", SPOILED)
def test_each_rule_of_folders(tmp_path, code):
    folder = make(tmp_path / "object")
    SPOILED[code](folder)
    assert code in codes(folder)[0]


def test_a_version_of_an_earlier_specification_than_the_one_before_it(tmp_path):
    folder = make(tmp_path / "object", spec="1.0")
    put(folder / "v1", inventory(1, spec="1.1"))
    assert "E103" in codes(folder)[0]


WARNED = {
    "W002": lambda folder: (folder / "v1" / "other").mkdir(),
    "W010": lambda folder: [path.unlink() for path in (folder / "v1").glob("inventory*")],
    "W013": lambda folder: (folder / "extensions" / "unheard-of").mkdir(parents=True),
}  # fmt: skip


@pytest.mark.parametrize("code", WARNED)
def test_each_warning_of_folders(tmp_path, code):
    folder = make(tmp_path / "object")
    WARNED[code](folder)
    assert codes(folder) == (set(), {code})


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("W004", lambda document: document.update(digestAlgorithm="sha256")),
        ("W005", lambda document: document.update(id="just a name")),
        ("W007", lambda document: document["versions"]["v2"].pop("message")),
        ("W008", in_version(user={"name": "x"})),
        ("W009", in_version(user={"name": "x", "address": "x"})),
    ],
)
def test_each_warning_of_inventories(code, change):
    document = inventory()
    change(document)
    assert code in {each.code[5:] for each in check_inventory(document, "inventory.json")}


def test_other_words_in_an_older_inventory_are_a_warning(tmp_path):
    folder = make(tmp_path / "object")
    changed = inventory(1)
    changed["versions"]["v1"]["message"] = "Other words"
    put(folder / "v1", changed)
    assert codes(folder) == (set(), {"W011"})


def test_the_digest_algorithm_may_change_between_versions(tmp_path):
    folder = make(tmp_path / "object")
    old = inventory(1)
    names = {digest(data): digest(data, "sha256") for data in FILES.values()}
    old["digestAlgorithm"] = "sha256"
    old["manifest"] = {names[key]: paths for key, paths in old["manifest"].items()}
    block = old["versions"]["v1"]
    block["state"] = {names[key]: paths for key, paths in block["state"].items()}
    (folder / "v1" / "inventory.json.sha512").unlink()
    put(folder / "v1", old, algorithm="sha256")
    assert codes(folder) == (set(), {"W004"})
    block["state"] = {key: [f"{paths[0]}x"] for key, paths in block["state"].items()}
    put(folder / "v1", old, algorithm="sha256")
    assert "E066" in codes(folder)[0]


def root_codes(folder: Path) -> set[str]:
    return {each.code[5:] for each in validation.check_root(folder)}


def test_storage_roots(tmp_path):
    root = tmp_path / "root"
    make(root / "ab" / "object")
    assert root_codes(root) == {"E069"}
    (root / "0=ocfl_1.0").write_text("ocfl_1.0\n")
    assert root_codes(root) == {"E081"}
    (root / "0=ocfl_1.1").write_text("wrong")
    assert root_codes(root) == {"E076"}
    (root / "0=ocfl_1.0").unlink()
    assert root_codes(root) == {"E080"}
    (root / "0=ocfl_1.1").write_text("ocfl_1.1\n")
    assert root_codes(root) == set()
    (root / "ocfl_layout.json").write_text("{}")
    (root / "empty").mkdir()
    (root / "ab" / "stray.txt").write_text("x")
    (root / "extensions" / "unheard-of").mkdir(parents=True)
    (root / "extensions" / "stray.txt").write_text("x")
    (root / "link").symlink_to(root / "ab")
    assert root_codes(root) == {"E070", "E072", "E073", "E090", "E112", "W016"}
    assert validation.find_objects(root / "ab") == [root / "ab" / "object"]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"versions": {"v1": {"state": {"x": 3}}}, "manifest": {"x": 1}}']
)
def test_any_json_is_judged(tmp_path, data):
    folder = make(tmp_path / "object")
    put(folder, data)
    assert codes(folder)[0]
