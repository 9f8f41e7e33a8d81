"""Harvests a site and serves the result: Webdepot plain and in the browser, and wget with pywb."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.fidelity_sites import Site, serve_files
from bench.portal import SERVER

from webdepot.services.admin import setup

HARVEST_TIMEOUT_S = 900
COMMAND = "from webdepot.cli.main import main; main()"


class HarvestFailed(Exception):
    """A program ended with an error; the message is the end of what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Where archived pages are shown: `prefix` before the address of a page, in a frame found by `frame`."""

    prefix: str
    frame: str
    ports: tuple[int, ...]
    """Ports that belong to the replay; requests to all others leave it."""


@contextmanager
def serve(site: Site) -> Iterator[str]:
    """The live site on loopback; yields its base address without a slash at the end."""
    if not site.command:
        with serve_files(site) as base:
            yield base
        return
    port = _free_port()
    command = [part.format(address=f"127.0.0.1:{port}") for part in site.command]
    environment = {**os.environ, "PHP_CLI_SERVER_WORKERS": "4"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # php's workers outlive their parent
        process.wait(timeout=30)


def harvest_with_webdepot(home: Path, seed: str, browser: str) -> None:
    sandbox = "browser_sandbox = false\n" if os.geteuid() == 0 else ""
    setup.found(home, settings=f"[harvest]\nallow_private = true\ndelay_s = 0\n{sandbox}")
    given = [sys.executable, "-c", COMMAND, "--home", str(home), "--quiet", "archive", seed]
    _run([*given, "--browser", browser], home, good=(0, 1))  # 1: finished with findings


def harvest_with_wget(folder: Path, seed: str, programs: Path) -> None:
    """Mirror with wget's own WARC writer, and add it to a collection of pywb."""
    folder.mkdir()
    mirror = [
        "wget",
        "-q",
        "--mirror",
        "-p",
        "-P",
        str(folder / "mirror"),
        "--warc-file",
        str(folder / "wget"),
    ]
    _run([*mirror, seed], folder, good=(0, 8))  # 8: a server answered with an error, such as 404
    for command in (["init", "all"], ["add", "all", str(folder / "wget.warc.gz")]):
        _run([str(programs / "wb-manager"), *command], folder)
    shutil.rmtree(folder / "mirror", ignore_errors=True)


@contextmanager
def webdepot_served(home: Path) -> Iterator[Replay]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(home)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        portal, replay = json.loads(process.stdout.readline())
        ports = tuple(urlsplit(url).port or 80 for url in (portal, replay))
        yield Replay(prefix=f"{portal}/all/{time.strftime('%Y')}1231235959/", frame="#frame", ports=ports)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        process.stdout.close()


@contextmanager
def pywb_served(folder: Path, programs: Path) -> Iterator[Replay]:
    port = _free_port()
    command = [str(programs / "wayback"), "-p", str(port), "-b", "127.0.0.1", "-d", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield Replay(prefix=f"http://127.0.0.1:{port}/all/", frame="#replay_iframe", ports=(port,))
    finally:
        process.terminate()
        process.wait(timeout=30)


def _run(command: list[str], folder: Path, good: tuple[int, ...] = (0,)) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=HARVEST_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise HarvestFailed(f"{Path(command[0]).name} took more than {HARVEST_TIMEOUT_S} s") from error
    if done.returncode not in good or "Traceback" in done.stderr:
        raise HarvestFailed(f"{Path(command[0]).name} exits {done.returncode}: {done.stderr.strip()[-400:]}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise HarvestFailed(f"{process.args!r} ended at once")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise HarvestFailed(f"{process.args!r} does not answer")
