"""What the how-to says about backups of servers: each command is run as it is there, against real servers."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url

from databases import Databases
from s3_servers import S3Server
from small_warcs import write_warc
from webdepot.cluster import postgresql_server
from webdepot.services.admin import setup

pytestmark = pytest.mark.slow
HOW_TO = (Path(__file__).parents[2] / "docs" / "how-to" / "several-machines.md").read_text()
BIN = Path(sys.executable).parent
PAGES = {
    f"http://x.example/{number}": b"<!doctype html><title>Mill %d</title><p>A watermill" % number
    for number in range(3)
}
LATER = {"http://x.example/later": b"<!doctype html><title>Later</title><p>A windmill"}


class Keeper:
    """Runs commands of the how-to in a shell, as its reader would."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home, self._environment = home, environment

    def run(self, command: str, *, into: Path | None = None, status: int = 0) -> str:
        if command.startswith("webdepot"):
            command = command.replace("webdepot", f"webdepot --json --home {self.home}", 1)
        done = subprocess.run(
            shlex.split(command), capture_output=True, timeout=280, check=False, env=self._environment
        )
        assert done.returncode == status, (command, done.stdout[-2000:], done.stderr[-2000:])
        if into is not None:
            into.write_bytes(done.stdout)
            return ""
        return done.stdout.decode()

    def found(self, words: str) -> set[str]:
        lines = self.run(f"webdepot search {words}").splitlines()
        return {json.loads(line)["url"] for line in lines if "url" in json.loads(line)}


def command(start: str) -> str:
    """The only command of the how-to that starts like this."""
    found = set(re.findall(rf"(?:`|^    )({re.escape(start)}[^`\n]*)", HOW_TO, re.MULTILINE))
    (only,) = found
    return str(only)


@pytest.fixture
def keeper(tmp_path: Path, databases: Databases, seaweed: S3Server) -> Keeper:
    address = make_url(databases.create())
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{postgresql_server.package() / 'pginstall' / 'bin'}:{os.environ['PATH']}",
        "PGHOST": str(address.query["host"]),
        "PGUSER": str(address.username),
        "WEBDEPOT_PLACE_MAIN_ACCESS_KEY": seaweed.access_key,
        "WEBDEPOT_PLACE_MAIN_SECRET_KEY": seaweed.secret_key,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        setup.create(
            tmp_path / "home",
            settings=f'[database]\nurl = "{address.render_as_string()}"\n[index]\ncaptures = "postgresql"\n'
            f'[depot]\nplace = "{seaweed.new_address()}"\n',
        )
    keeper = Keeper(tmp_path / "home", environment)
    write_warc(tmp_path / "mills.warc.gz", PAGES)
    keeper.run(f"webdepot import {tmp_path / 'mills.warc.gz'}")
    return keeper


def test_a_database_is_restored_from_its_dump(keeper: Keeper, tmp_path: Path, databases: Databases) -> None:
    settings = (keeper.home / "webdepot.toml").read_text()
    name = str(make_url(re.findall('^url = "(.*)"', settings, re.MULTILINE)[0]).database)
    dump = tmp_path / "archive.dump"
    keeper.run(command("pg_dump ").partition(" >")[0].replace(" archive", f" {name}"), into=dump)

    databases.run(f"DROP DATABASE {name} WITH (FORCE)")
    keeper.run("webdepot doctor", status=1)
    keeper.run(command("createdb ").replace(" archive", f" {name}"))
    keeper.run(
        command("pg_restore ").replace("=archive", f"={name}").replace("/backup/archive.dump", str(dump))
    )
    keeper.run(command("webdepot index rebuild"))

    keeper.run("webdepot depot audit")
    assert keeper.found("watermill") == set(PAGES)
    write_warc(tmp_path / "later.warc.gz", LATER)
    keeper.run(f"webdepot import {tmp_path / 'later.warc.gz'}")  # new rows have new numbers
    assert keeper.found("windmill") == set(LATER)


def test_a_depot_is_restored_from_its_copy(keeper: Keeper, tmp_path: Path, seaweed: S3Server) -> None:
    keeper.run(f"webdepot depot copy add second {tmp_path / 'second'}")
    keeper.run("webdepot depot audit")
    place = re.findall(
        '^place = "s3://(.*?)/(.*?)[?]', (keeper.home / "webdepot.toml").read_text(), re.MULTILINE
    )
    bucket, prefix = place[0]
    client = seaweed.client()
    listed = client.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    assert len(listed) > 3
    for one in listed:
        client.delete_object(Bucket=bucket, Key=one["Key"])
    client.close()

    assert '"repaired"' in keeper.run(command("webdepot depot audit --older-than"))
    keeper.run("webdepot depot audit --older-than 0 --no-repair")
    assert keeper.found("watermill") == set(PAGES)
