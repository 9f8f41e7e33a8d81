"""What does it cost to open pages in a browser, compared with plain fetching and with a browser without
recording?

    python -m bench.browser [--quick] [--json PATH]

Pages built by scripts on two hosts on loopback (nginx), politeness off. Three runs over the same pages:

    plain       our harvest with `fetch = "plain"`: pages and the resources named in their HTML
    browser     our harvest with `fetch = "browser"`: every page opened, all its requests recorded by us
    no capture  the same Chromium, the same steps in each tab, without recording

CPU seconds include all processes, also those of the browser. The ratio of `browser` to `no capture` is the
cost of recording, their difference what a page costs beyond Chromium's own work; it fails above `MOST_BEYOND_S`.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

PORT = 8896
TABS = 2
PARTS = 4
"""Requests of each page made by scripts; the style sheet and the script file are shared by all pages."""
MOST_BEYOND_S = 0.5
"""CPU seconds a page beyond those of Chromium without recording."""


_NGINX = """
worker_processes 1; daemon off; pid {work}/nginx.pid; error_log {work}/error.log crit;
events {{ worker_connections 500; }}
http {{
  types {{ text/html html; text/css css; text/javascript js; application/json json; image/svg+xml svg; text/plain txt; }}
  access_log {work}/access.log combined buffer=64k flush=1s;
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u;
  scgi_temp_path {work}/s;
  server {{ listen 127.0.0.1:{port}; listen 127.0.0.2:{port}; root {root}; }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    name: str
    pages: int
    pages_per_s: float
    cpu_s_per_1000: float
    requests: int


def main() -> None:
    given = _arguments()
    if given.child:
        _child(given.child, Path(given.folder), given.pages)
        return
    folder = Path(tempfile.mkdtemp(prefix="webdepot-bench-"))
    pages = 12 if given.quick else given.pages
    for needed in ("nginx", "chromium"):
        if not shutil.which(needed):
            sys.exit(f"This benchmark needs {needed}: apt-get install {needed}")
    _write(folder / "site", pages)
    work = folder / "nginx"
    work.mkdir()
    folder.chmod(0o755)  # nginx workers run as another user
    (work / "nginx.conf").write_text(_NGINX.format(work=work, root=folder / "site", port=PORT))
    server = subprocess.Popen(["nginx", "-c", str(work / "nginx.conf"), "-p", str(work)])
    try:
        _wait_for_server()
        runs = [_measured(name, folder, work, pages) for name in ("plain", "browser", "no capture")]
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    _print_results(runs, given.json)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="12 pages")
    parser.add_argument("--pages", type=int, default=80)
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def _write(folder: Path, pages: int) -> None:
    """Write pages whose text, images and links are added by scripts."""
    folder.mkdir(parents=True)
    (folder / "style.css").write_text("body {font: 16px sans-serif} li {margin: 1em}")
    (folder / "app.js").write_text(
        "fetch('/data/' + document.title + '.json').then(a => a.json()).then(d => { document.body.innerHTML ="
        " '<ul>' + d.lines.map(l => '<li>' + l).join('') + '</ul>' + d.pictures.map(p => '<img src=' + p + "
        "'>').join('') });"
    )
    (folder / "data").mkdir()
    (folder / "pictures").mkdir()
    links = [
        [f'<a href="{_address(number)}">x</a>' for number in range(host, pages, TABS)] for host in range(TABS)
    ]
    (folder / "robots.txt").write_text("")
    for number in range(pages):
        head = f"<!doctype html><title>{number}</title><link rel=stylesheet href=/style.css>"
        (folder / f"{number}.html").write_text(
            f"{head}<body>{''.join(links[number]) if number < TABS else ''}<script src=/app.js></script>"
        )
        pictures = [f"/pictures/{number}-{part}.svg" for part in range(PARTS - 1)]
        words = [f"Line {line} of page {number}: a harbour, a map, a letter." for line in range(60)]
        (folder / "data" / f"{number}.json").write_text(json.dumps({"lines": words, "pictures": pictures}))
        for path in pictures:
            (folder / path[1:]).write_text(
                f"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><circle "
                f"r='{number % 20}'/></svg>"
            )


def _address(number: int) -> str:
    """Serve the pages from as many hosts as there are tabs: a harvest opens one page of a host at a time."""
    return f"http://127.0.0.{1 + number % TABS}:{PORT}/{number}.html"


def _wait_for_server() -> None:
    for _ in range(100):
        try:
            urlopen(f"http://127.0.0.1:{PORT}/robots.txt").close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("nginx did not start")


def _measured(name: str, folder: Path, work: Path, pages: int) -> Run:
    log, out = work / "access.log", folder / name.replace(" ", "-")
    out.mkdir()
    begin = log.stat().st_size if log.exists() else 0
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "bench.browser",
        "--child",
        name,
        "--folder",
        str(out),
        "--pages",
        str(pages),
    ]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    time.sleep(1.5)  # nginx writes its log once a second
    with log.open() as file:
        file.seek(begin)
        requests = sum("robots.txt" not in line and "/sitemap" not in line for line in file)
    took = json.loads((out / "took.json").read_text())
    if took["pages"] != pages:
        sys.exit(f"{name}: {took['pages']} of {pages} pages")
    figures = {
        "pages_per_s": round(pages / took["seconds"], 2),
        "cpu_s_per_1000": round(cpu_s * 1000 / pages, 1),
    }
    return Run(name=name, pages=pages, requests=requests, **figures)


# --- in a separate process ---


def _child(name: str, out: Path, pages: int) -> None:
    done = asyncio.run(_opened(pages)) if name == "no capture" else _harvested(name, out, pages)
    (out / "took.json").write_text(json.dumps(done))


def _harvested(way: str, out: Path, pages: int) -> dict[str, float]:
    from webdepot.archive import Archive
    from webdepot.services.admin import setup
    from webdepot.services.harvest import runner
    from webdepot.services.harvest.options import HarvestOptions

    sandbox = "browser_sandbox = false\n" if os.geteuid() == 0 else ""
    settings = f'[harvest]\nallow_private = true\ndelay_s = 0\nguess = false\nfetch = "{way}"\nbrowser_tabs = {TABS}\n{sandbox}'
    setup.create(out / "home", settings=settings + "sitemaps = false\n")
    with Archive.open(out / "home") as archive:
        options = replace(HarvestOptions.from_config(archive.config), screenshots="none")
        harvest = runner.start_or_resume(archive, [_address(host) for host in range(TABS)], options)
        began_s = time.monotonic()
        done = runner.run(archive, harvest)
        took_s = time.monotonic() - began_s
    opened = done.counts.get("opened", 0)
    # Plain fetching gets only pages, style sheet and script: only scripts know the data and images.
    seen = opened if way == "browser" else done.counts["fetched"] - 2 * TABS
    return {"seconds": took_s, "pages": seen}


async def _opened(pages: int) -> dict[str, float]:
    from webdepot.harvest.browser import launch, page_snapshot, supervisor
    from webdepot.harvest.browser import tab as browser_tab
    from webdepot.harvest.browser.devtools import DevTools

    class Unstopped:
        """A browser connection that intercepts no requests."""

        def __init__(self, devtools: DevTools) -> None:
            self._devtools = devtools

        def __getattr__(self, name: str) -> Any:
            return getattr(self._devtools, name)

        async def call(self, method: str, *given: Any, **more: Any) -> Any:
            return {} if method == "Fetch.enable" else await self._devtools.call(method, *given, **more)

    blocks = ("--host-resolver-rules", "--proxy", "--headless")
    launch._OPTIONS = (
        "--headless",
        *(option for option in launch._OPTIONS if not option.startswith(blocks)),
    )
    script = Path(tempfile.mkdtemp(prefix="webdepot-bench-")) / "supervisor.py"
    script.write_text(Path(supervisor.__file__).read_text().replace("    _leave_network(library)\n", ""))
    supervisor.__file__ = str(script)
    process = launch.start(Path(shutil.which("chromium") or ""), sandbox=os.geteuid() != 0)
    devtools = await DevTools.open(process.commands, process.answers)
    began_s, seen = time.monotonic(), 0

    async def never(asked: object) -> None:
        raise AssertionError("nothing is stopped")

    async def tab(host: int) -> None:
        nonlocal seen
        idle: list[Any] = []
        for number in range(host, pages, TABS):
            options = page_snapshot.PageOptions(url=_address(number))
            snapshot = await browser_tab.open_page(Unstopped(devtools), options, never, idle, lambda tab: [])
            seen += not snapshot.failure and "Line 59" in snapshot.text

    try:
        await asyncio.gather(*(tab(host) for host in range(TABS)))
        return {"seconds": time.monotonic() - began_s, "pages": seen}
    finally:
        devtools.close()
        process.end()
        shutil.rmtree(script.parent)


def _print_results(runs: list[Run], path: str | None) -> None:
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {TABS} tabs")
    print(f"{'':12} {'pages':>6} {'pages/s':>8} {'CPU s / 1000 pages':>19} {'requests':>9}")
    for run in runs:
        print(f"{run.name:12} {run.pages:>6} {run.pages_per_s:>8} {run.cpu_s_per_1000:>19} {run.requests:>9}")
    by_name = {run.name: run for run in runs}
    browser, plain, bare = by_name["browser"], by_name["plain"], by_name["no capture"]
    ratios = {
        "cpu of browser to no capture": round(browser.cpu_s_per_1000 / bare.cpu_s_per_1000, 2),
        "cpu of browser to plain": round(browser.cpu_s_per_1000 / plain.cpu_s_per_1000, 1),
        "pages/s of browser to no capture": round(browser.pages_per_s / bare.pages_per_s, 2),
    }
    beyond_s = round((browser.cpu_s_per_1000 - bare.cpu_s_per_1000) / 1000, 3)
    for name, ratio in ratios.items():
        print(f"{name}: {ratio}")
    print(f"CPU seconds a page beyond no capture: {beyond_s}")
    if path:
        figures = {"runs": [asdict(run) for run in runs], "ratios": ratios, "beyond_s": beyond_s}
        Path(path).write_text(json.dumps(figures, indent=1))
    if beyond_s > MOST_BEYOND_S:
        sys.exit(f"Recording costs {beyond_s} CPU seconds a page; it must be at most {MOST_BEYOND_S}.")


if __name__ == "__main__":
    main()
