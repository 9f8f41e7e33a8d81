"""The documentation says what the program does: generated pages are up to date, commands in texts exist,
links lead somewhere.
"""

import ast
import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
import typer.main

from webdepot import errors
from webdepot.cli import main
from webdepot.config import config
from webdepot.web.language.language import load

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HAND_WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _commands() -> dict[str, object]:
    """Every command of the program by its full name, groups included."""
    program = typer.main.get_command(main.build_app())
    found: dict[str, object] = {"webdepot": program}
    waiting = [("webdepot", program)]
    while waiting:
        prefix, group = waiting.pop()
        for name, command in getattr(group, "commands", {}).items():
            found[f"{prefix} {name}"] = command
            waiting.append((f"{prefix} {name}", command))
    return found


COMMANDS = _commands()


def test_the_reference_is_up_to_date() -> None:
    stale = [
        name
        for name, text in _reference().pages().items()
        if (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: make docs"


def test_check_fails_when_a_page_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = _reference()
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    assert reference.main() == 1
    assert "errors.md" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "argv", ["reference.py"])
    assert reference.main() == 0
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    assert reference.main() == 0


def test_every_command_has_words_an_example_and_a_place_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    leaves = {name: command for name, command in COMMANDS.items() if not hasattr(command, "commands")}
    assert len(leaves) >= 8
    for name, command in leaves.items():
        assert f"## {name}\n" in text
        assert command.help, name
        assert "Example: webdepot" in (command.epilog or ""), name
        section = text.split(f"## {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[0]}`" in section, f"{name} {parameter.opts[0]}"


def test_every_configuration_key_error_and_port_is_documented() -> None:
    folder = ROOT / "docs" / "reference"
    keys = (folder / "configuration.md").read_text(encoding="utf-8")
    for setting in config.iter_settings(config.from_tree(ROOT, {}, environment={}, origin="test")):
        section, _, key = setting.name.partition(".")
        assert f"| `{key}` |" in keys.split(f"## {section}\n")[1].split("\n## ")[0], setting.name
    told = (folder / "errors.md").read_text(encoding="utf-8")
    for kind in errors.WebdepotError.__subclasses__():
        if kind.__module__ == errors.__name__:
            assert f"| `{kind.__name__}` | `{kind.code}` | {kind.exit_status} | {kind.http_status} |" in told
    ports = (folder / "ports.md").read_text(encoding="utf-8")
    sources = (ROOT / "src" / "webdepot" / "ports").glob("*.py")
    names = [
        name
        for source in sources
        for name in re.findall(r"^class (\w+)\(Protocol\)", source.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(names) >= 7
    assert [name for name in names if f"## {name}\n" not in ports] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_inside_the_documentation_lead_somewhere(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            broken.append(target)
    assert broken == []


def _without_code(text: str) -> str:
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^(    .*\n)+", "", text, flags=re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _calls(page: Path) -> Iterator[str]:
    """Commands in code blocks and in code spans that call the program, up to the first thing a shell would
    act on.
    """
    text = page.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    for line in [*lines, *re.findall(r"`([^`\n]+)`", text)]:
        found = re.match(r"(?:.*[ =/])?(webdepot(?: .+)?)$", line)
        if found and not line.startswith(
            ("Description", "User=", "Group=", "adduser", "systemctl", "cd ", "sqlite3", "rsync")
        ):
            yield re.split(r"\s{3,}|[;|&]| \(", found[1])[0]


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_in_texts_exist(page: Path) -> None:
    wrong = [call for call in _calls(page) if not _exists(call)]
    assert wrong == []


def _exists(call: str) -> bool:
    """The command is known, and so is every option after it."""
    words = [word for word in shlex.split(call.replace("…", "").replace("...", "")) if word]
    command, name = COMMANDS["webdepot"], "webdepot"
    rest = words[1:]
    while rest:
        word, rest = rest[0], rest[1:]
        if word == "--":  # options of another command follow
            break
        if word.startswith("-"):
            option = next((item for item in command.params if word in item.opts), None)
            if option is None and word != "--help":
                return False
            if option is not None and not option.is_flag:
                rest = rest[1:]
        elif f"{name} {word}" in COMMANDS:
            name = f"{name} {word}"
            command = COMMANDS[name]
        elif hasattr(command, "commands"):
            return word.isupper()
    return True


_COMMAND = re.compile(
    r"(?<![\w./-])webdepot ((?:--home \S+ )?[a-z]+(?: (?:[a-z-]+|[A-Z_]+|--[a-z-]+|\{\w+\}|\S*/\S*|\"[^\"]*\"))*)"
)


def _texts_of(path: Path) -> Iterator[str]:
    """The texts of a module, with X for values that are filled in; of other files the lines."""
    if path.suffix != ".py":
        yield from path.read_text(encoding="utf-8").splitlines()
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_commands_in_messages_and_pages_exist() -> None:
    source = ROOT / "src" / "webdepot"
    paths = [*source.rglob("*.py"), *(source / "web").rglob("*.toml"), *(source / "web").rglob("*.html")]
    calls = {
        f"webdepot {found[1]}"
        for path in paths
        for text in _texts_of(path)
        for found in _COMMAND.finditer(text)
        if '"' not in found[1] or found[1].count('"') % 2 == 0
    }
    assert len(calls) > 200
    assert [call for call in sorted(calls) if not _exists(call)] == []


def test_menus_in_texts_exist() -> None:
    """Paths such as *Select → Sites* consist of labels of the portal."""
    labels = {text.casefold() for text in load("en").texts.values()}
    paths = {
        (page.name, path)
        for page in HAND_WRITTEN
        for path in re.findall(r"\*([^*\n]+ → [^*\n]+)\*", page.read_text(encoding="utf-8"))
    }
    assert len(paths) > 20
    assert [
        (name, path)
        for name, path in sorted(paths)
        if not all(part.strip().casefold() in labels for part in path.split(" → "))
    ] == []


def test_wrong_commands_would_be_found() -> None:
    assert _exists("webdepot --home x archive https://www.example.org/ --limit-pages 200")
    assert _exists("webdepot COMMAND")
    assert not _exists("webdepot harvset list")
    assert not _exists("webdepot archive https://www.example.org/ --limit-page 2")


def test_configuration_in_texts_is_valid() -> None:
    known = {
        setting.name
        for setting in config.iter_settings(config.from_tree(ROOT, {}, environment={}, origin="test"))
    }
    sections = {name.partition(".")[0] for name in known}
    for page in HAND_WRITTEN:
        for name in re.findall(r"`([a-z]+\.[a-z_]+)`", page.read_text(encoding="utf-8")):
            if name.partition(".")[0] in sections and not name.endswith(
                (".py", ".db", ".toml", ".md", ".log", ".js")
            ):
                assert name in known, f"{page.name}: {name}"
        section = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.fullmatch(r"    \[(\w+)\]", line):
                section = found[1] if found[1] in sections else ""
            elif section and (found := re.match(r"    (\w+) = ", line)):
                assert f"{section}.{found[1]}" in known, f"{page.name}: {section}.{found[1]}"
            elif not line.startswith("    "):
                section = ""


def test_every_word_of_the_glossary_has_three_languages() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    words = [row for row in rows if row[0] != "English"]
    assert all(len(row) == 4 and all(row) for row in words)
    assert len({row[0] for row in words}) == len(words)
    things = {
        "archive",
        "depot",
        "target",
        "seed",
        "organisation",
        "harvest",
        "visit",
        "container",
        "record",
        "capture",
        "finding",
        "verdict",
    }
    later = {"package", "slice", "title", "notice", "case", "rule", "partner"}
    people = {"reader", "partner", "curator", "reviewer", "administrator"}
    assert things | later | people <= {row[0] for row in words}


def test_decision_records_follow_one_template_and_are_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = re.findall(
        r"^\| \[(\d+)\]\((.+?)\) \| (.+) \| (.+) \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE
    )
    records = sorted(folder.glob("[0-9]*.md"))
    assert [name for _, name, _, _ in index] == [record.name for record in records]
    for record, (number, _, title, status) in zip(records, index, strict=True):
        text = record.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(record.name[:4])}. {title}\n\nStatus: {status.split()[0]}"), (
            record.name
        )
        assert int(number) == int(record.name[:4])
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Choice", "Consequences"], (
            record.name
        )


def test_the_data_flow_page_names_every_module_of_services() -> None:
    page = (ROOT / "docs" / "explanation" / "data-flow.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE))
    services = ROOT / "src" / "webdepot" / "services"
    areas = [folder for folder in services.iterdir() if (folder / "__init__.py").exists()]
    assert sorted(rows) == sorted(folder.name for folder in areas)
    for folder in areas:
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        modules |= {path.parent.name + "/" for path in folder.glob("*/__init__.py")}
        assert set(rows[folder.name].split(", ")) == modules, folder.name


def test_the_crawl_page_names_modules_that_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "crawl.md").read_text(encoding="utf-8")
    harvest = ROOT / "src" / "webdepot" / "harvest"
    named = re.findall(r"\b((?:politeness|scope|fetch|browser|links|report|parts)/\w+)", page)
    assert len(named) >= 10
    assert [name for name in named if not (harvest / f"{name}.py").exists()] == []


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_first_line_of_a_block_is_as_deep_as_the_second(page: Path) -> None:
    wrong = re.compile(r"(?<=\n\n) {8}(\S.*)\n {4}\S")
    assert wrong.findall(page.read_text(encoding="utf-8")) == []
