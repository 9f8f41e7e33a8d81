"""Write the reference pages of the documentation from the code, or check that they are up to date.

    python scripts/reference.py            write docs/reference/*.md
    python scripts/reference.py --check    exit 1 and name the pages that differ

Five pages: commands (from the program), configuration (from `config.py`), errors and exit codes (from
`errors.py`), ports (from `ports.py`), states (from the state tables). What the code does not say, the pages
cannot say: the words are mended there.
"""

import argparse
import ast
import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import get_args, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
_MADE = "<!-- Made by scripts/reference.py from the code. Change the words there, then run: make docs -->"


def pages() -> dict[str, str]:
    """File name and text of every reference page."""
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "commands.md": commands,
        "configuration.md": configuration,
        "errors.md": errors,
        "ports.md": ports,
        "states.md": states,
    }
    return {
        name: re.sub(r"\n{3,}", "\n\n", "\n".join([_MADE, "", *make()])).rstrip() + "\n"
        for name, make in makers.items()
    }


# --- states ---


def states() -> Iterator[str]:
    from webdepot.harvest.runs import HARVEST
    from webdepot.selection.cases import CASE
    from webdepot.selection.states import LETTER, TARGET
    from webdepot.selection.turns import TURN
    from webdepot.states import drawn

    yield from (
        "# States",
        "",
        "Every change of state is a row of a table in the code. What is in no row is refused, with the reason.",
        "",
    )
    for title, machine in (
        ("A target", TARGET),
        ("A letter", LETTER),
        ("A turn", TURN),
        ("A harvest", HARVEST),
        ("A case", CASE),
    ):
        yield from (f"## {title}", "")
        yield from drawn(machine)


# --- commands ---


def commands() -> Iterator[str]:
    import typer.main

    from webdepot.cli import main

    program = typer.main.get_command(main.build_app())
    yield from ("# Commands", "")
    yield from (program.help or "", "")
    yield from ("```", "webdepot [--home DIR] [--json] [--quiet] COMMAND ...", "```", "")
    yield from (
        "`--home`, `--json` and `--quiet` stand before the command; `--json` and `--quiet` also after it, where a command has them.",
        "",
    )
    yield from _options(program)
    yield from ("| command | does |", "|---|---|")
    listed = list(_walk(program, "webdepot"))
    for name, command in listed:
        yield f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(_summary(command.help or ''))} |"
    yield ""
    for name, command in listed:
        yield from _command(name, command)


def _walk(group, prefix: str) -> Iterator[tuple[str, object]]:
    """Every command with its full name, in the order of the program; groups are not commands."""
    for name, command in group.commands.items():
        full = f"{prefix} {name}"
        if hasattr(command, "commands"):
            yield from _walk(command, full)
        elif not command.hidden:
            yield full, command


def _command(name: str, command) -> Iterator[str]:
    yield from (f"## {name}", "", _unwrapped(command.help or ""), "")
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    words = [
        name,
        *(_argument(parameter) for parameter in arguments),
        "[OPTIONS]" if len(command.params) > len(arguments) else "",
    ]
    yield from ("```", " ".join(filter(None, words)), "```", "")
    told = [parameter for parameter in arguments if parameter.help]
    if told:
        yield from (*(f"- `{_argument(parameter)}`: {parameter.help}" for parameter in told), "")
    yield from _options(command)
    if command.epilog:
        yield from (f"{_epilog(command.epilog)}", "")


def _argument(parameter) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _options(command) -> Iterator[str]:
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden
    ]
    if not options:
        return
    hints = get_type_hints(inspect.unwrap(command.callback))
    yield from ("| option | meaning |", "|---|---|")
    for option in options:
        names = ", ".join(f"`{name}`" for name in option.opts)
        value = "" if option.is_flag else f" `{option.metavar or _kind(hints[option.name])}`"
        default = (
            f" Default: `{option.default}`."
            if isinstance(option.default, str | int) and option.default and not option.is_flag
            else ""
        )
        yield f"| {names}{_cell(value)} | {_cell(option.help or '')}{default} |"
    yield ""


def _kind(hint: object) -> str:
    """The word for a value, from the annotation of the function behind the command: frameworks change theirs."""
    inner = [kind for kind in get_args(hint) if kind is not type(None)]
    if inner:
        return _kind(inner[0])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "|".join(str(item.value) for item in hint)
    return {int: "N", float: "NUMBER", Path: "PATH"}.get(hint, "TEXT")


def _epilog(words: str) -> str:
    """Examples are shown as code: `Example: COMMAND`."""
    lead, _, rest = words.partition(": ")
    return f"{lead}: `{rest.strip()}`"


# --- configuration ---


def configuration() -> Iterator[str]:
    from webdepot import config

    yield from ("# Configuration", "")
    yield f"An archive is configured by one file, `{config.FILE_NAME}`, in its home. `webdepot init` writes it with every key, its"
    yield "meaning and its default commented out. Each key can also be given in the environment, as `WEBDEPOT_SECTION_KEY`, which"
    yield "wins over the file. An unknown key or a value of the wrong kind is an error. `webdepot config show` tells each value and"
    yield from ("where it came from.", "")
    given = config.from_tree(Path("HOME"), {}, environment={}, origin="defaults")
    settings = list(config.iter_settings(given))
    for section, words in config.sections():
        yield from (f"## {section}", "", words, "", "| key | kind | default | meaning |", "|---|---|---|---|")
        for setting in settings:
            name, _, key = setting.name.partition(".")
            if name == section:
                yield f"| `{key}` | {setting.kind} | {_default(setting.default)} | {_cell(setting.doc)} |"
        yield ""


def _default(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`' if value else "empty"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
    return "empty" if value == {} else f"`{value}`"


# --- errors ---


def errors() -> Iterator[str]:
    from webdepot import errors as tree
    from webdepot.cli import main

    yield from ("# Errors and exit codes", "")
    yield "Every error is one line of words: what, on which thing, and what to do. Scripts read the exit code; programs that use"
    yield from ("the web interface read the HTTP status.", "")
    yield from ("| error | code | exit | HTTP | when |", "|---|---|---|---|---|")
    meanings = _meanings(inspect.getdoc(tree) or "")
    for name, kind in vars(tree).items():
        if inspect.isclass(kind) and issubclass(kind, tree.WebdepotError) and kind is not tree.WebdepotError:
            yield f"| `{name}` | `{kind.code}` | {kind.exit_status} | {kind.http_status} | {_cell(meanings[name])} |"
    yield from ("", "## Exit codes", "", *_exit_codes(inspect.getdoc(main) or ""), "")


def _summary(text: str) -> str:
    """The first paragraph of a docstring as one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _unwrapped(text: str) -> str:
    """A docstring with each paragraph on one line; indented lines stay as they are."""
    return re.sub(r"(?<=\S)\n(?=[^\s])", " ", inspect.cleandoc(text))


def _meanings(doc: str) -> dict[str, str]:
    """The last column of the tree drawn at the top of `errors.py`."""
    return {found[1]: found[2].strip() for found in re.finditer(r"── (\w+)\s+\d+\s+\d+\s+(.+)", doc)}


def _exit_codes(doc: str) -> Iterator[str]:
    """`Exit codes: 0 done · 1 failed …` from the docstring of the program, one row each."""
    words = re.sub(r"\s+", " ", doc[doc.index("Exit codes:") + len("Exit codes:") :]).strip().rstrip(".")
    yield from ("| exit | meaning |", "|---|---|")
    for part in words.split(" · "):
        number, _, meaning = part.partition(" ")
        yield f"| {number} | {_cell(meaning)} |"


# --- ports ---


def ports() -> Iterator[str]:
    tree = ast.parse((ROOT / "src" / "webdepot" / "ports.py").read_text(encoding="utf-8"))
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases)
    ]
    yield from ("# Ports", "", ast.get_docstring(tree) or "", "", "| port | implementations |", "|---|---|")
    classes = list(_classes())
    for node in found:
        yield f"| [`{node.name}`](#{node.name.lower()}) | {', '.join(_implementations(node, classes)) or 'none yet'} |"
    yield ""
    for node in found:
        yield from (
            f"## {node.name}",
            "",
            ast.get_docstring(node) or "",
            "",
            *map(_method, _methods(node)),
            "",
        )


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """As written, without `self`; a property is its name."""
    is_property = any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)
    arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    words = " ".join((ast.get_docstring(node) or "").split())
    return f"- `{node.name}{'' if is_property else f'({arguments})'}{returns}`" + (
        f": {words}" if words else ""
    )


def _implementations(port: ast.ClassDef, classes: list[tuple[str, frozenset[str]]]) -> Iterator[str]:
    """Classes of the package that have every method of the port."""
    wanted = {method.name for method in _methods(port)}
    return (words for words, methods in classes if wanted <= methods)


def _classes() -> Iterator[tuple[str, frozenset[str]]]:
    """Every class of the package with its methods, found in the source without importing it."""
    source = ROOT / "src" / "webdepot"
    for path in sorted(source.rglob("*.py")):
        module = path.relative_to(source).with_suffix("").as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body if module != "ports" else ():
            if isinstance(node, ast.ClassDef):
                yield f"`{node.name}` ({module})", frozenset(method.name for method in _methods(node))


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


# --- the door ---


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page differs")
    check = parser.parse_args().check
    os.environ["TERMINAL_WIDTH"] = "120"
    stale = [name for name, text in pages().items() if not _same(name, text, check)]
    if stale:
        print(f"Not up to date: {', '.join(stale)}. Run: make docs", file=sys.stderr)
    return 1 if stale else 0


def _same(name: str, text: str, check: bool) -> bool:
    path = FOLDER / name
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old == text:
        return True
    if check:
        diff = difflib.unified_diff(
            old.splitlines(), text.splitlines(), f"{name} (is)", f"{name} (code)", lineterm="", n=0
        )
        print("\n".join(list(diff)[:20]), file=sys.stderr)
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
