"""The start of the program: commands load no library they do not need. Modules are checked, not times."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from webdepot.cli.command_table import COMMANDS
from webdepot.cli.main import build_app

PROGRAM = Path(sys.executable).with_name("webdepot")
LOADED = "\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
DATABASE = {"sqlalchemy"}
SERVICES = {
    "webdepot.services.pipeline",
    "webdepot.services.harvest.harvests",
    "webdepot.services.index.indexer",
    "webdepot.services.access.search",
}
CRAWLER = {"pycurl", "turbohtml", "pikepdf", "webdepot.harvest.crawl"}
LOOKING_UP = {"dns", "cryptography", "webdepot.selection.domains.host_discovery"}
WEB = {"starlette", "uvicorn", "jinja2"}


def loaded_by(script: str, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{script}{LOADED}", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def loaded_by_program(*arguments: str) -> set[str]:
    return loaded_by(
        "from webdepot.cli.main import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code",
        *arguments,
    )


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("--version", DATABASE | SERVICES | CRAWLER | LOOKING_UP | WEB | {"rich"}),
        ("--help", DATABASE | SERVICES | CRAWLER | LOOKING_UP | WEB),
        ("config show", DATABASE | SERVICES | CRAWLER | LOOKING_UP | WEB),
        ("status --json", SERVICES | CRAWLER | LOOKING_UP | WEB),
        ("account list", SERVICES | CRAWLER | LOOKING_UP | WEB),
        ("harvest list", LOOKING_UP | WEB | {"pikepdf", "tantivy", "webdepot.services.index.indexer"}),
        ("archive --help", LOOKING_UP | WEB | {"pikepdf"}),
    ],
)
def test_a_command_loads_what_it_needs(home, command, absent):
    assert not loaded_by_program("--home", str(home), *command.split()) & absent


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("webdepot.index.extract", DATABASE | SERVICES | CRAWLER | WEB | {"tantivy", "pygfried"}),
        (
            "webdepot.formats.survey",
            DATABASE | SERVICES | CRAWLER | WEB | {"lxml", "PIL", "tantivy", "pygfried"},
        ),
        ("webdepot.formats.examine", DATABASE | SERVICES | CRAWLER | WEB | {"lxml", "PIL", "pygfried"}),
    ],
)
def test_a_worker_loads_what_it_needs(module, absent):
    assert not loaded_by(f"import {module}") & absent


def test_the_help_text_of_a_command_comes_from_the_table_alone():
    program = typer.main.get_command(build_app())
    for command in COMMANDS:
        assert program.commands[command.name].help == command.help
        if command.function:
            module = importlib.import_module(f"webdepot.cli.commands.{command.module}")
            assert not getattr(module, command.function).__doc__


def test_help_knows_all_commands_and_a_typing_error_is_corrected():
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert all(f" {command.name} " in done.stdout for command in COMMANDS)
    wrong = subprocess.run([PROGRAM, "sarch", "tulips"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "search" in wrong.stderr


def test_long_work_gives_way_to_readers_once():
    script = """
import os
from pathlib import Path
from webdepot.cli.call import Call
call, before = Call(home=Path(), json=False, quiet=False), os.nice(0)
call.give_way()
call.give_way()
print(before, os.nice(0))
"""
    given = {name: value for name, value in os.environ.items() if name != "WEBDEPOT_INDEX_NICENESS"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=given, capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert after == max(before, 10)
