"""Docstrings, comments and documents name only modules that exist, so a reader can follow them."""

import ast
import importlib
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "webdepot"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "migrations" not in path.parts)
DOCUMENTS = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
FILES = [
    path for folder in ("src", "tests", "bench", "fuzz", "scripts") for path in (ROOT / folder).rglob("*.py")
]
FILE = re.compile(r"`([\w/]*[a-z_]\.py)`")
IMPORT = re.compile(r"^(?:from|import) webdepot\b", re.MULTILINE)
DOTTED = re.compile(r"`((?:[A-Za-z_]\w*\.)+(?!html|css)[A-Za-z_]\w*)(?:\(\))?`")


@cache
def names() -> frozenset[str]:
    """Modules, packages and classes of the program."""
    modules = {path.stem for path in MODULES} | {path.parent.name for path in MODULES}
    return frozenset(modules | {node.name for node in definitions() if isinstance(node, ast.ClassDef)})


@cache
def definitions() -> tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    return tuple(
        node
        for path in MODULES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    )


@cache
def public_names() -> frozenset[str]:
    """What modules define: functions, classes, constants."""
    constants = {
        name
        for path in MODULES
        for name in re.findall(r"^([A-Z][A-Z0-9_]+)\b.* = ", path.read_text(), re.MULTILINE)
    }
    return frozenset({node.name for node in definitions()} | constants)


def prose_of(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.string.startswith('"""'):
            yield token.string


def names_in(path: Path) -> frozenset[str]:
    """Variables and parameters of a module."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    variables = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(variables | {node.arg for node in nodes if isinstance(node, ast.arg)})


def missing_in(prose: str, local: frozenset[str]) -> list[str]:
    """References in backticks to a file or a module that does not exist. `local` are names of the file itself."""
    files = [match[1] for match in FILE.finditer(prose) if not any(_ends(path, match[1]) for path in FILES)]
    parts = [match[1].split(".") for match in DOTTED.finditer(prose)]
    return files + [
        ".".join(each)
        for each in parts
        if each[-1] in public_names()
        and each[-2] not in names() | local
        and importlib.util.find_spec(each[0]) is None
    ]


def _ends(path: Path, reference: str) -> bool:
    wanted = Path(reference).parts
    return path.parts[-len(wanted) :] == wanted


@pytest.mark.parametrize("path", (*MODULES, *DOCUMENTS), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_modules_that_exist_are_named(path: Path) -> None:
    local = names_in(path) if path.suffix == ".py" else frozenset()
    assert [reference for prose in prose_of(path) for reference in missing_in(prose, local)] == []


@pytest.mark.parametrize(
    "prose", ["see `gone.py`", "see `container/gone.py`", "`gone.GRAMMAR` and `arc.GRAMMAR`"]
)
def test_a_reference_to_a_module_that_is_gone_is_found(prose: str) -> None:
    assert len(missing_in(prose, frozenset())) == 1


def programs_in(path: Path) -> list[ast.Module]:
    """Programs in string literals, which tests and benchmarks run in other processes."""
    programs = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and IMPORT.search(node.value):
            with suppress(SyntaxError):  # a template, or text about code
                programs.append(ast.parse(node.value))
    return programs


def missing_names(program: ast.Module) -> list[str]:
    """What a program uses of modules of ours that these do not have."""
    modules: dict[str, object] = {}
    missing = []
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "webdepot":
            source = importlib.import_module(str(node.module))
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if hasattr(source, alias.name) or importlib.util.find_spec(full) is not None:
                    modules[alias.asname or alias.name] = getattr(
                        source, alias.name, None
                    ) or importlib.import_module(full)
                else:
                    missing.append(full)
    for node in ast.walk(program):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = modules.get(node.value.id)
            if isinstance(owner, ModuleType) and not hasattr(owner, node.attr):
                missing.append(f"{owner.__name__}.{node.attr}")
    return missing


@pytest.mark.parametrize("folder", ["tests", "bench", "scripts", "fuzz"])
def test_programs_in_strings_use_only_what_exists(folder: str) -> None:
    """The type checker does not see them."""
    missing = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)  # its own wrong examples
        for program in programs_in(path)
        if (names := missing_names(program))
    }
    assert missing == {}


@pytest.mark.parametrize(
    "text",
    [
        "from webdepot.services import gone",
        "from webdepot.services.access import rules\nrules.gone()",
    ],
)
def test_a_name_that_a_program_misses_is_found(text: str) -> None:
    assert len(missing_names(ast.parse(text))) == 1
