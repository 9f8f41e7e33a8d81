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
from urllib.parse import unquote, urlsplit

from bench.fidelity_sites import Site, serve_files
from bench.portal import served

from webdepot.harvest.scope.hop_path import is_part
from webdepot.services.admin import setup

HARVEST_TIMEOUT_S = 900
REFUSED = -5000
"""This status or a lower one is a refusal by a rule (scope, limits, robots.txt): no request was sent."""
COMMAND = """
import atexit, json, resource, sys
from pathlib import Path
from webdepot.cli.main import main
def note():
    cpu = {name: sum(resource.getrusage(whose)[:2]) for name, whose in
           (("own", resource.RUSAGE_SELF), ("children", resource.RUSAGE_CHILDREN))}
    Path(sys.argv[2], "cpu.json").write_text(json.dumps(cpu))
atexit.register(note)
main()
"""
"""The command line, which notes its CPU time at the end."""


class HarvestFailed(Exception):
    """A program ended with an error; the message is the end of what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Where archived pages are shown: `prefix` before the address of a page, in a frame found by `frame`."""

    prefix: str
    frame: str
    ports: tuple[int, ...]
    """Ports that belong to the replay; requests to all others leave it."""
    start: str = ""
    """In the address of the frame until it opens the archived page."""


@contextmanager
def serve(site: Site) -> Iterator[str]:
    """The live site on loopback; yields its base address without a slash at the end."""
    if not site.command:
        with serve_files(site) as base:
            yield base
        return
    port = _free_port()
    command = [part.format(address=f"127.0.0.1:{port}", port=port) for part in site.command]
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


def seeds_of(site: Site, base: str) -> list[str]:
    return [base + path for path in (site.pages if site.limit_pages else site.pages[:1])]


def harvest_with_webdepot(home: Path, site: Site, base: str, browser: str) -> None:
    begun = begin_harvest(home, seeds_of(site, base), browser, limit_pages=site.limit_pages)
    wait_for(begun, good=(0, 1))  # 1: finished with findings


def begin_harvest(
    home: Path, seeds: list[str], browser: str, *, limit_pages: int = 0
) -> subprocess.Popen[str]:
    """Begin to archive sites of this machine, in a process of its own."""
    if not home.exists():
        sandbox = "browser_sandbox = false\n" if os.geteuid() == 0 else ""
        setup.create(home, settings=f"[harvest]\nallow_private = true\ndelay_s = 0\n{sandbox}")
    given = [sys.executable, "-c", COMMAND, "--home", str(home), "--quiet", "archive", *seeds]
    limit = ["--limit-pages", str(limit_pages)] if limit_pages else []
    return _begin([*given, "--browser", browser, *limit], home)


def asked_elsewhere(home: Path, seed: str) -> list[str]:
    """Addresses of other hosts that Webdepot's harvests of one host requested, by their crawl logs. Addresses
    that were found but refused do not count.
    """
    own = urlsplit(seed).netloc
    asked = []
    for log in _logs(home):
        for line in log.read_text(encoding="utf-8").splitlines():
            _, status, _, url, *_ = line.split()
            if int(status) > REFUSED and url.startswith("http") and urlsplit(url).netloc != own:
                asked.append(url)
    return asked


def _logs(home: Path) -> list[Path]:
    """The crawl logs of the harvests: in their packages, or, after a limit, in their folders."""
    return sorted(home.glob("depot/**/content/log/crawl.log")) or sorted(home.glob("harvests/*/crawl.log"))


def count_page_requests(home: Path, site: Site) -> tuple[int, int]:
    """How many pages Webdepot requested (without parts, robots.txt, sitemaps and guesses), and how many of
    the site's pages with content it has.
    """
    asked, kept = 0, set()
    for log in _logs(home):
        for line in log.read_text(encoding="utf-8").splitlines():
            _, status, _, url, path, _, mime, *_ = line.split()
            if url.startswith("http") and int(status) > REFUSED:
                is_sitemap = path.endswith("M") and (mime.endswith("xml") or status != "200")
                asked += not (is_part(path) or path.endswith("P") or is_sitemap)
                if status == "200":
                    kept.add(unquote(url.split("/", 3)[3]))
    return asked, sum(path[1:] in kept for path in site.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """Seconds of user and system time of one harvest."""

    own_s: float
    children_s: float
    """Time of Chromium and of the processes that examine formats."""
    opened: int
    """Pages opened in the browser."""


def cpu_time(home: Path) -> CpuTime | None:
    """CPU time of a harvest of Webdepot; None if it did not end by itself."""
    if not (home / "cpu.json").exists():
        return None
    cpu = json.loads((home / "cpu.json").read_text())
    lines = [line.split() for log in _logs(home) for line in log.read_text(encoding="utf-8").splitlines()]
    opened = sum(
        "html" in line[6] and not is_part(line[4]) and "browser" in line[-1].split(",") for line in lines
    )
    return CpuTime(own_s=cpu["own"], children_s=cpu["children"], opened=opened)


def harvest_with_wget(folder: Path, site: Site, base: str, programs: Path) -> None:
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
        *(["--reject-regex", site.wget_rejects] if site.wget_rejects else ()),
        *(["--level=1"] if site.limit_pages else ()),
    ]
    _run(
        [*mirror, *seeds_of(site, base)], folder, good=(0, 3, 8)
    )  # 3: a file error; 8: a server's error, such as 404
    for command in (["init", "all"], ["add", "all", str(folder / "wget.warc.gz")]):
        _run([str(programs / "wb-manager"), *command], folder)
    shutil.rmtree(folder / "mirror", ignore_errors=True)


@contextmanager
def webdepot_served(home: Path) -> Iterator[Replay]:
    with served(home) as server:
        ports = tuple(urlsplit(url).port or 80 for url in (server.portal, server.replay))
        prefix = f"{server.portal}/all/{time.strftime('%Y')}1231235959/"
        yield Replay(prefix=prefix, frame="#frame", ports=ports, start="/-/start/")


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
    wait_for(_begin(command, folder), good)


def _begin(command: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], good: tuple[int, ...] = (0,)) -> None:
    """Wait until a program has ended; HarvestFailed if its exit status is not one of `good`."""
    command = process.args
    name = Path(str(command[0]) if isinstance(command, list) else str(command)).name
    try:
        _, printed = process.communicate(timeout=HARVEST_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise HarvestFailed(f"{name} took more than {HARVEST_TIMEOUT_S} s") from error
    if process.returncode not in good or "Traceback" in printed:
        raise HarvestFailed(f"{name} exits {process.returncode}: {printed.strip()[-400:]}")


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
