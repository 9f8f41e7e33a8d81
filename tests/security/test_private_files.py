"""What is secret stays where it is: files of the home are private by mode, and secrets are not in the register
of the depot, in children's environments, in messages or in what commands print.
"""

import gzip
import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harvest_site import running_site

from webdepot.archive import Archive
from webdepot.config import config
from webdepot.depot import migration_tools, register
from webdepot.depot.bundle import submission
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import ConfigError
from webdepot.guard import environment
from webdepot.harvest.browser import launch
from webdepot.selection import letter_rows
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import LetterKind
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.depot import alarm

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SECRET = "HUSHHUSHSECRET42"
PROGRAM = [sys.executable, "-c", "from webdepot.cli.main import main; main()"]
TOKEN = "Abcdefgh-ijklmnop_qrstuvwx"


def webdepot(*arguments: str, umask: int = 0o022, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=os.environ | variables,
        umask=umask,
    )


def open_to_others(home: Path) -> list[str]:
    return [
        str(path.relative_to(home.parent)) for path in [home, *home.rglob("*")] if is_open_to_others(path)
    ]


def is_open_to_others(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a worker that just ended had the database open
        return False
    return not stat.S_ISLNK(mode) and bool(mode & (stat.S_IRWXG | stat.S_IRWXO))


# --- modes ---


def test_no_file_of_an_archive_can_be_read_by_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)  # also a folder that was there before
    assert webdepot("init", str(home)).returncode == 0
    assert open_to_others(home) == []
    with running_site() as site:
        site.page("/", "<title>Inside</title>")
        done = webdepot("--home", str(home), "archive", f"{site.url}/", "--allow-private", "--delay", "0")
        assert done.returncode == 0, done.stderr
    assert open_to_others(home) == []
    warc = next(home.rglob("*.warc.gz"))
    other = tmp_path / "given.warc.gz"
    other.write_bytes(warc.read_bytes())
    done = webdepot("--home", str(home), "import", str(other))
    assert done.returncode == 0, done.stderr
    process = subprocess.Popen(
        [*PROGRAM, "--home", str(home), "serve", "--port", "0", "--replay-port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=0o022,
    )
    try:
        assert process.stdout is not None
        assert "portal" in json.loads(process.stdout.readline())
        assert open_to_others(home) == []
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert ("root" in errors) is (os.geteuid() == 0)


def test_the_service_makes_a_private_home_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        setup.create(tmp_path / "home")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "home" / "webdepot.toml").stat().st_mode) == 0o600


def test_doctor_finds_a_home_that_others_can_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    setup.create(home)
    assert {check.name: check.state for check in doctor.examine(home)}["privacy"] == "ok"
    home.chmod(0o755)
    (check,) = [check for check in doctor.examine(home) if check.name == "privacy"]
    assert (check.state, check.remedy) == ("warning", f"chmod -R go= {home}")


# --- the register ---


def test_the_link_in_a_waiting_letter_is_not_in_the_register(tmp_path: Path) -> None:
    home = tmp_path / "home"
    setup.create(home)
    store = FolderStore(tmp_path / "place")
    with Archive.open(home, clock=lambda: NOW) as archive, archive.database.transaction() as connection:
        letter = Letter(
            kind=LetterKind.RECEIVED,
            language="en",
            recipient="owner@example.org",
            subject="subject",
            body=f"See https://archive.example/answer/{TOKEN}, please",
            token_hash=letter_rows.hash_of(TOKEN),
            agent="test",
            queued_at=NOW,
        )
        letter_rows.add(connection, letter)
        settings = f'[mail]\npassword = "{SECRET}"\nhost = "mail.example"\n'
        assert register.write(store, connection, config=settings, user="test", created=NOW) is not None
    written = b"".join(
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in (tmp_path / "place").rglob("*")
        if path.is_file()
    )
    assert b"See https://archive.example/answer/[removed], please" in written
    assert b"mail.example" in written
    for secret in (TOKEN, SECRET):
        assert secret.encode() not in written


@pytest.mark.parametrize(
    "text",
    [
        '[mail]\npassword = "X"\n',
        '[mail]\n"password" = "X"\n',
        'mail.password = "X"\n',
        'mail = { host = "a", password = "X" }\n',
        'oidc = { client_secret = """\nX""" }\n',
        '[oidc]\nclient_secret = """\nX\n"""\n',
        "[oidc]\nclient_secret = '''\nX\n\n'''\nissuer = \"https://a.example\"\n",
    ],
)
def test_no_spelling_of_a_secret_setting_gets_into_the_register(text: str) -> None:
    assert SECRET not in register._without_secrets(text.replace("X", SECRET))


# --- children ---


def test_children_get_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "WEBDEPOT_MAIL_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "GITHUB_TOKEN",
        "https_proxy",
    ):
        monkeypatch.setenv(name, SECRET)
    assert SECRET not in environment.of_command().values()
    assert environment.of_command()["PATH"]
    seen = tmp_path / "seen"
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\nenv >> {seen}\ncp "$1" "$2" 2>/dev/null\nexit 0\n')
    spy.chmod(0o755)
    assert alarm._run(str(spy), "text") == ""
    assert list(submission.scan(str(spy), spy)) == []
    tool = migration_tools.get_tool("x", {"x": f"text/plain text/html {spy} {{input}} {{output}}"})
    assert migration_tools.run(tool, spy, tmp_path / "converted") == ""
    browser = launch.start(spy, sandbox=False)
    browser.supervisor_process.wait(timeout=60)
    browser.end()
    os.close(browser.commands)
    os.close(browser.answers)
    assert len(re.findall("^PATH=", seen.read_text(), re.MULTILINE)) == 4
    assert SECRET not in seen.read_text()


# --- messages and output ---


def test_a_wrong_secret_is_not_quoted(tmp_path: Path) -> None:
    for tree in ({"mail": {"password": [SECRET]}}, {"oidc": {"client_secret": {"a": SECRET}}}):
        with pytest.raises(ConfigError) as refused:
            config.from_tree(tmp_path, tree, environment={}, origin="webdepot.toml")
        assert SECRET not in str(refused.value)


def test_commands_do_not_print_secrets(tmp_path: Path) -> None:
    home = tmp_path / "home"
    setup.create(home, settings=f'[mail]\npassword = "{SECRET}"\n[oidc]\nclient_secret = "{SECRET}"\n')
    (home / "logins.toml").write_text(f'["a.example"]\nuser = "me"\npassword = "{SECRET}"\n')
    (home / "logins.toml").chmod(0o600)
    variables = {"WEBDEPOT_MAIL_PASSWORD": SECRET}
    webdepot("--home", str(home), "partner", "add", "p", "https://p.example/oai", "--token", SECRET)
    for command in (
        ["config", "show"],
        ["status"],
        ["doctor"],
        ["partner", "list"],
        ["partner", "show", "p"],
    ):
        for form in ([], ["--json"]):
            done = webdepot("--home", str(home), *command, *form, **variables)
            assert SECRET not in done.stdout + done.stderr, command
