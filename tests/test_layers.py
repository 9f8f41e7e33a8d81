"""The import law: faces -> services and archive -> rooms -> foundation; rooms do not import each other, but
all may read `container`.

Imports are taken from the syntax tree of every module, so those inside functions count as well.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "webdepot"
FACES = {"cli", "web", "demo"}
COMPOSITION = {"services", "archive"}
ROOMS = {
    "selection",
    "harvest",
    "container",
    "quality",
    "formats",
    "depot",
    "index",
    "access",
    "exchange",
    "engine",
}
SHARED_ROOM = "container"
FOUNDATION = {
    "cdxj",
    "model",
    "url",
    "words",
    "times",
    "digest",
    "durable",
    "errors",
    "event_loop",
    "http_headers",
    "config",
    "settings",
    "database",
    "provenance",
    "reasons",
    "accounts",
    "ports",
    "mail",
    "sessions",
    "sheets",
    "states",
    "version",
    "wal",
}
MIGRATIONS = "migrations"
"""Alembic's files: they see the tables of every room and nothing sees them."""
COMPOSITION_ROOT = "archive"
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "core", "base", "managers"}
LONGEST_MODEL = 300


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "vendor" not in path.parts)


def part_of(name: str) -> str:
    """`webdepot.harvest.links.extract` belongs to `harvest`; the package itself to nothing."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def name_of(path: Path) -> str:
    parts = ("webdepot", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Every module of ours that a source imports, with the line; `from webdepot import x` means `webdepot.x`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "webdepot"
            )
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            if base == "webdepot":
                yield from ((node.lineno, f"webdepot.{alias.name}") for alias in node.names)
            elif base.startswith("webdepot."):
                yield node.lineno, base


def is_allowed(importer: str, imported: str) -> bool:
    """May a module of one part import a module of another?"""
    if importer in (imported, MIGRATIONS) or not imported:
        return True
    if imported in FACES:
        # The command line starts the other faces; nothing else looks upwards.
        return importer == "cli"
    if imported in COMPOSITION:
        return importer in FACES or (
            importer in COMPOSITION and (importer, imported) != (COMPOSITION_ROOT, "services")
        )
    if imported in ROOMS:
        return importer in FACES | COMPOSITION or (importer in ROOMS and imported == SHARED_ROOM)
    return imported in FOUNDATION


def test_every_part_has_its_layer() -> None:
    parts = {part_of(name_of(path)) for path in modules()} - {"", MIGRATIONS}
    assert parts - FACES - COMPOSITION - ROOMS - FOUNDATION == set()


@pytest.mark.parametrize("path", modules(), ids=lambda path: name_of(path))
def test_imports_point_downwards(path: Path) -> None:
    importer = part_of(name_of(path))
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    found = imports(path.read_text(encoding="utf-8"), package)
    wrong = [
        f"{path.name}:{line} imports {name}"
        for line, name in found
        if not is_allowed(importer, part_of(name))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("cli", "services", True),
        ("cli", "demo", True),
        ("web", "cli", False),
        ("services", "archive", True),
        ("archive", "services", False),
        ("services", "harvest", True),
        ("harvest", "container", True),
        ("container", "harvest", False),
        ("harvest", "index", False),
        ("index", "services", False),
        ("depot", "model", True),
        ("model", "url", True),
        ("url", "container", False),
        ("ports", "services", False),
    ],
)
def test_the_law_itself(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def test_imports_inside_functions_and_relative_ones_are_seen() -> None:
    lines = (
        "def late():",
        "    from webdepot.index import entry",
        "    import webdepot.depot.ocfl",
        "    from webdepot import services",
        "    import json",
    )
    assert {name for _, name in imports("\n".join(lines), "webdepot.harvest")} == {
        "webdepot.index",
        "webdepot.depot.ocfl",
        "webdepot.services",
    }
    assert list(imports("from ..index import entry", "webdepot.harvest")) == [(1, "webdepot.index")]
    assert list(imports("from .links import extract", "webdepot.harvest")) == [(1, "webdepot.harvest.links")]
    assert list(imports("from .. import index", "webdepot.harvest")) == [(1, "webdepot.index")]


def test_no_module_hides_behind_an_empty_name() -> None:
    assert [path for path in modules() if {path.stem, path.parent.name} & FORBIDDEN_NAMES] == []


def test_the_shared_nouns_stay_few() -> None:
    assert len((SOURCE / "model.py").read_text(encoding="utf-8").splitlines()) < LONGEST_MODEL


def test_every_module_says_what_it_is_for() -> None:
    with_words = [path for path in modules() if path.name != "__init__.py"]
    assert [
        name_of(path)
        for path in with_words
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ] == []


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").rglob("*.py")), ids=lambda path: name_of(path))
def test_the_command_line_takes_only_types_from_components_and_opens_no_transaction(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    functions = [
        f"{path.name}:{node.lineno} imports {alias.name} of {node.module}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and part_of(node.module or "") in ROOMS
        for alias in node.names
        if not alias.name[:1].isupper()
    ]
    assert functions == []
    assert ".transaction()" not in source and ".reading()" not in source
