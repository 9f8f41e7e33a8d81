"""The layers: interfaces -> services and archive -> components -> foundation. Imports point downwards.

Components do not import each other, but all may read `container`, the file format. Areas of `services` are
ordered as well. Imports are read from the syntax tree of every module, so those inside functions and those for
the type checker count too.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "webdepot"
INTERFACES = {"cli", "web", "demo"}
COMPOSITION = {"services", "archive"}
COMPONENTS = {
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
    "cluster",
}
SHARED_COMPONENT = "container"
FOUNDATION = {
    "accounts",
    "cdxj",
    "config",
    "database",
    "dialects",
    "digest",
    "browser_files",
    "durable",
    "errors",
    "event_loop",
    "guard",
    "http_headers",
    "leases",
    "mail",
    "model",
    "ports",
    "provenance",
    "query_budget",
    "reasons",
    "states",
    "text",
    "times",
    "url",
    "version",
}
MIGRATIONS = "migrations"
"""Alembic's files: they see the tables of every component and nothing sees them."""
COMPOSITION_ROOT = "archive"
AREAS = (
    "progress",
    "access",
    "index",
    "selection",
    "harvest",
    "quality",
    "depot",
    "catalogue",
    "permission",
    "intake",
    "exchange",
    "review",
    "schedule",
    "admin",
    "pipeline",
    "jobs",
    "cluster",
)
"""Areas of `services`, lowest first: an area imports itself and those before it."""
DEFERRED: dict[tuple[str, str], str] = {
    ("webdepot.depot.store.container_files", "webdepot.depot.store.in_place"): "obstore",
    ("webdepot.archive", "webdepot.engine.dask_engine"): "distributed",
    ("webdepot.archive", "webdepot.engine.process_pool"): "multiprocessing",
    ("webdepot.archive", "webdepot.formats.examine"): "pygfried, in the guarded process: subprocess and mmap",
    ("webdepot.archive", "webdepot.formats.signature_sets"): "pygfried",
    ("webdepot.archive", "webdepot.index.sqlite_file"): "sqlite3",
    ("webdepot.archive", "webdepot.index.sqlite_captures"): "sqlite3",
    ("webdepot.archive", "webdepot.index.opensearch.client"): "ssl",
    ("webdepot.archive", "webdepot.index.opensearch.index"): "tantivy",
    ("webdepot.archive", "webdepot.index.postgresql_captures"): "psycopg",
    ("webdepot.archive", "webdepot.index.text.sqlite_index"): "numpy",
    ("webdepot.archive", "webdepot.index.text.tantivy_index"): "tantivy",
    ("webdepot.cli.call", "webdepot.archive"): "sqlalchemy",
    ("webdepot.cli.commands.archive", "webdepot.services.selection.organisations"): "dns, cryptography",
    ("webdepot.cli.commands.harvest", "webdepot.services.pipeline"): "resiliparse, lxml",
    ("webdepot.cli.commands.home", "webdepot.services.admin.archive_status"): "sqlalchemy",
    ("webdepot.cli.commands.home", "webdepot.services.admin.doctor.doctor"): "pycurl, lxml",
    ("webdepot.cli.commands.home", "webdepot.services.admin.setup"): "sqlalchemy",
    ("webdepot.cli.commands.serve", "webdepot.demo.run"): "PIL, pikepdf",
    ("webdepot.cli.main", "webdepot.dialects.sqlite"): "sqlalchemy",
    ("webdepot.database", "webdepot.dialects.postgresql"): "psycopg",
    ("webdepot.depot.places", "webdepot.depot.store.s3"): "obstore",
    ("webdepot.services.access.replay.session_cookies", "webdepot.harvest.fetch.login"): "turbohtml",
    ("webdepot.cli.commands.profile", "webdepot.services.harvest.crawl_test"): "pycurl, lmdb",
    (
        "webdepot.services.harvest.crawler",
        "webdepot.services.harvest.organisation_hosts",
    ): "dns, cryptography",
    ("webdepot.services.schedule.plans", "webdepot.services.harvest.runner"): "pycurl, lmdb",
    ("webdepot.services.index.derive", "webdepot.harvest.links.bodies"): "turbohtml",
    ("webdepot.services.index.derive", "webdepot.harvest.links.extract"): "turbohtml",
    ("webdepot.services.review.preview", "webdepot.services.index.derived_files"): "resiliparse, lxml",
    ("webdepot.web.reader.page_pictures", "webdepot.services.depot.picture_maker"): "uvloop, pycurl",
    ("webdepot.web.reader.page_pictures", "webdepot.services.depot.pictures"): "resiliparse, lxml",
    ("webdepot.services.jobs.worker", "webdepot.services.jobs.work"): "resiliparse, lxml, pycurl",
    ("webdepot.web.serve", "webdepot.web.replay.proxy_mode"): "cryptography",
}
"""Imports of our own modules inside functions: (importer, imported) to the heavy library that a command or a
worker would otherwise load when it starts. There are no others.
"""
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "core", "base", "managers"}
LONGEST_MODEL = 300
LONGEST_FUNCTION = 60
MOST_MODULES = 21
SAME_NAME: dict[str, str] = {}
"""Public class names that exist more than once, and why."""


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "vendor" not in path.parts)


def part_of(name: str) -> str:
    """`webdepot.harvest.links` belongs to `harvest`; the package itself to nothing."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def area_of(name: str) -> str:
    """`webdepot.services.harvest.runner` belongs to the area `harvest`; everything outside services to none."""
    parts = name.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "services" else ""


def name_of(path: Path) -> str:
    parts = ("webdepot", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(source: str | ast.Module, package: str) -> Iterator[tuple[ast.stmt, str, str]]:
    """Every import of ours in a source: the statement, the module, and the name taken from it (or nothing)."""
    for node in ast.walk(ast.parse(source) if isinstance(source, str) else source):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name, "") for alias in node.names if alias.name.startswith("webdepot"))
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(filter(None, (above, node.module)))
            if origin == "webdepot" or origin.startswith("webdepot."):
                yield from ((node, origin, alias.name) for alias in node.names)


@cache
def known_modules() -> frozenset[str]:
    return frozenset(map(name_of, modules()))


def module_of(origin: str, name: str) -> str:
    """The module that `from origin import name` loads: `name` itself where that is a module."""
    whole = f"{origin}.{name}"
    return whole if name and whole in known_modules() else origin


def imports_of(path: Path) -> list[tuple[ast.stmt, str, str]]:
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    return list(imports(tree_of(path), package))


def is_allowed(importer: str, imported: str) -> bool:
    """May a module of one part import a module of another?"""
    if importer in (imported, MIGRATIONS) or not imported:
        return True
    if imported in INTERFACES:
        # The command line starts the other interfaces; nothing else looks upwards.
        return importer == "cli"
    if imported in COMPOSITION:
        return importer in INTERFACES or (
            importer in COMPOSITION and (importer, imported) != (COMPOSITION_ROOT, "services")
        )
    if imported in COMPONENTS:
        return importer in INTERFACES | COMPOSITION or (
            importer in COMPONENTS and imported == SHARED_COMPONENT
        )
    return imported in FOUNDATION


def is_type(name: str) -> bool:
    """Whether a name is one of a class or a constant, by how it is written."""
    return name[:1].isupper()


def test_every_part_has_its_layer() -> None:
    parts = {part_of(name_of(path)) for path in modules()} - {"", MIGRATIONS}
    assert parts - INTERFACES - COMPOSITION - COMPONENTS - FOUNDATION == set()


@pytest.mark.parametrize("path", modules(), ids=lambda path: name_of(path))
def test_imports_point_downwards(path: Path) -> None:
    importer = part_of(name_of(path))
    wrong = [
        f"{path.name}:{node.lineno} imports {origin}.{name}"
        for node, origin, name in imports_of(path)
        if not is_allowed(importer, part_of(module_of(origin, name)))
    ]
    assert wrong == []


def test_areas_of_services_call_down_only() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno} imports {module_of(origin, name)}"
        for path in modules()
        if (own := area_of(name_of(path)))
        for node, origin, name in imports_of(path)
        if (other := area_of(module_of(origin, name))) and AREAS.index(other) > AREAS.index(own)
    ]
    assert wrong == []


def test_interfaces_import_only_types_of_components() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno} imports {origin}.{name}"
        for path in modules()
        if part_of(name_of(path)) in INTERFACES
        for node, origin, name in imports_of(path)
        if part_of(module_of(origin, name)) in COMPONENTS and not is_type(name)
    ]
    assert wrong == []


def test_interfaces_open_no_transactions() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        if part_of(name_of(path)) in INTERFACES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("transaction", "reading", "remembered")
    ]
    assert wrong == []


def test_no_modules_import_each_other() -> None:
    graph = {
        name_of(path): {module_of(origin, name) for _, origin, name in imports_of(path)} for path in modules()
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above[above.index(name) :], name))
        if name not in done and name in graph:
            for imported in sorted(graph[name] - {name}):
                visit(imported, (*above, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_imports_inside_functions_are_the_listed_ones() -> None:
    deferred = {
        (name_of(path), module_of(origin, name))
        for path in modules()
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for _, origin, name in imports(ast.Module(body=[*function.body], type_ignores=[]), "")
    }
    assert {
        (importer, imported) for importer, imported in deferred if part_of(importer) != MIGRATIONS
    } == set(DEFERRED)


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
def test_which_part_may_import_which(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def test_imports_inside_functions_and_relative_ones_are_seen() -> None:
    lines = (
        "def late():",
        "    from webdepot.index import sqlite_captures",
        "    import webdepot.depot.ocfl",
        "    from webdepot import services",
        "    import json",
    )
    assert {module_of(origin, name) for _, origin, name in imports("\n".join(lines), "webdepot.harvest")} == {
        "webdepot.index.sqlite_captures",
        "webdepot.depot.ocfl",
        "webdepot.services",
    }
    relative = {
        "from ..index import sqlite_captures": "webdepot.index.sqlite_captures",
        "from .links import extract": "webdepot.harvest.links.extract",
        "from .. import index": "webdepot.index",
    }
    for line, module in relative.items():
        ((_, origin, name),) = imports(line, "webdepot.harvest")
        assert module_of(origin, name) == module


def test_no_module_hides_behind_an_empty_name() -> None:
    assert [path for path in modules() if {path.stem, path.parent.name} & FORBIDDEN_NAMES] == []


def test_no_folder_has_too_many_modules() -> None:
    folders = defaultdict(int)
    for path in modules():
        folders[path.parent.relative_to(SOURCE).as_posix()] += path.name != "__init__.py"
    assert {folder: count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_no_function_is_too_long() -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in modules()
        if part_of(name_of(path)) != MIGRATIONS
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_no_public_class_name_means_two_things() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name_of(path))
    repeated = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in repeated.items() if name not in SAME_NAME} == {}
    assert set(SAME_NAME) <= set(repeated)


def test_the_shared_nouns_stay_few() -> None:
    assert len((SOURCE / "model.py").read_text(encoding="utf-8").splitlines()) < LONGEST_MODEL


def test_every_module_says_what_it_is_for() -> None:
    with_text = [path for path in modules() if path.name != "__init__.py"]
    assert [name_of(path) for path in with_text if not ast.get_docstring(tree_of(path))] == []
