"""How fast is a whole harvest, compared with wget, HTTrack and Scrapy on the same site in the same run?

    python -m bench.harvest [--quick] [--rounds N] [--json PATH] [--only NAME,NAME] [--folder PATH]

A generated site over 50 hosts (`bench.site`) is served by nginx on loopback; politeness is off, everything
else is on: rules, robots.txt, crawl log, WARC with digests, checkpoints. Pages are the HTML pages of the
site, counted in the log of the server. Only the ratio to wget is meaningful, not the absolute figure. Our
containers are compared with the list of the generator: every address once, and no others.

The speed of a machine may change by a third within minutes, so wget and Webdepot alternate, three runs each,
and the medians count; HTTrack and Scrapy run once, afterwards. Two CPUs are seldom twice as fast as one (they
share caches, often a core): "apart" are two independent harvests of one process each, with half of the hosts
each; together they show the maximum that two processes can reach.
"""

import argparse
import collections
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.request import urlopen

from bench import site
from bench.site import Plan

PORT = 8897
LIMIT_S = 240
_PAGE = re.compile(r"/(?:p/[0-9]+\.html)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    name: str
    pages: int
    pages_per_s: float
    cpu_s_per_1000: float
    server_cpu_s_per_1000: float
    """CPU time of nginx during the run: it shares the CPUs with the program measured."""
    requests: int
    asked_twice: int
    connections: int
    peak_mb: float
    note: str = ""


def main() -> None:
    given = _arguments()
    folder = Path(given.folder or tempfile.mkdtemp(prefix="webdepot-bench-"))
    hosts, pages = (10, 60) if given.quick else (50, given.pages)
    plan = Plan(hosts=tuple(f"http://127.0.0.{number}:{PORT}" for number in range(2, 2 + hosts)), pages=pages)
    if not shutil.which("nginx"):
        sys.exit("This benchmark needs nginx: apt-get install nginx-light")
    site.write(plan, folder / "site")
    work = folder / "nginx"
    work.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # nginx workers run as another user
    (work / "nginx.conf").write_text(site.nginx_config(plan, folder / "site", work, PORT))
    server = subprocess.Popen(["nginx", "-c", str(work / "nginx.conf"), "-p", str(work)])
    try:
        _wait_for_server(plan)
        site.warm(plan)
        rounds = 1 if given.quick else given.rounds
        taken: dict[str, list[Run]] = {name: [] for name in _chosen(given.only)}
        for number in range(rounds):
            for name, runs in taken.items():
                if name in IN_TURNS or number == rounds - 1:
                    runs.append(_measured(name, plan, folder, work, server.pid))
    finally:
        server.terminate()
        server.wait()
        if not given.folder:
            shutil.rmtree(folder, ignore_errors=True)
    _print_results(plan, taken, given.json)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="600 pages instead of 20,000")
    parser.add_argument("--pages", type=int, default=400, help="of each of the 50 hosts")
    parser.add_argument("--rounds", type=int, default=3, help="of wget and us")
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--folder", help="keep site, logs and containers in this folder")
    return parser.parse_args()


def _chosen(only: str) -> list[str]:
    names = [*COMMANDS]
    return [name for name in names if not only or name in only.split(",")]


def _webdepot(plan: Plan, out: Path, *, processes: int) -> list[str]:
    settings = out / "settings.json"
    settings.write_text(json.dumps({"seeds": plan.seeds, "processes": processes}))
    return [sys.executable, "-m", "bench.harvest_child", str(out / "home"), str(settings)]


def _apart(plan: Plan, out: Path) -> list[str]:
    """Two harvests in parallel, each with half of the hosts."""
    commands = []
    for number in range(2):
        settings = out / f"settings-{number}.json"
        settings.write_text(json.dumps({"seeds": plan.seeds[number::2], "processes": 1}))
        commands.append(
            shlex.join(
                [sys.executable, "-m", "bench.harvest_child", str(out / f"home-{number}"), str(settings)]
            )
        )
    return ["bash", "-c", f"{commands[0]} & {commands[1]} & wait"]


def _wget(plan: Plan, out: Path) -> list[str] | str:
    if not shutil.which("wget"):
        return "wget is not installed"
    domains = ",".join(host.partition("://")[2].rpartition(":")[0] for host in plan.hosts)
    command = [
        "wget",
        "-q",
        "-r",
        "-l",
        "inf",
        "-p",
        "-H",
        f"--domains={domains}",
        "--tries=1",
        f"--warc-file={out}/w",
        "--no-check-certificate",
    ]
    # wget would never leave the trap; it gets the same limit of three repetitions as ours.
    return [
        *command,
        "--reject-regex",
        "(deeper/){4}",
        "--no-verbose",
        "-P",
        str(out),
        "--delete-after",
        plan.seeds[0],
    ]


def _httrack(plan: Plan, out: Path) -> list[str] | str:
    if not shutil.which("httrack"):
        return "httrack is not installed"
    filters = [
        "-*",
        *(f"+{host.partition('://')[2]}/*" for host in plan.hosts),
        "-*deeper/deeper/deeper/deeper*",
    ]
    options = ["-q", "-c16", "-%c0", "-A1000000000", "--disable-security-limits", "-s2", "-n", "-I0", "-R1"]
    return ["httrack", plan.seeds[0], "-O", str(out), *options, *filters]


def _scrapy(plan: Plan, out: Path) -> list[str] | str:
    if importlib.util.find_spec("scrapy") is None:
        return "Scrapy is not installed (pip install scrapy)"
    spider = out / "spider.py"
    spider.write_text(
        _SPIDER.format(
            seeds=list(plan.seeds[:1]),
            hosts=[host.partition("://")[2].rpartition(":")[0] for host in plan.hosts],
        )
    )
    return [
        sys.executable,
        "-m",
        "scrapy",
        "runspider",
        str(spider),
        "-s",
        "LOG_LEVEL=ERROR",
        "-s",
        f"FILES_STORE={out}",
    ]


_SPIDER = """
import scrapy
from scrapy.linkextractors import LinkExtractor

class Site(scrapy.Spider):
    name = "site"
    start_urls = {seeds!r}
    allowed_domains = {hosts!r}
    custom_settings = {{"ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS": 64, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "RETRY_ENABLED": False,
                       "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False}}
    links = LinkExtractor(tags=("a", "area", "link", "img", "script"), attrs=("href", "src"), deny_extensions=[], deny=r"(deeper/){{4}}")

    def parse(self, response):
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in self.links.extract_links(response):
                yield response.follow(link, self.parse)
"""

COMMANDS = {
    "wget": _wget,
    "webdepot": lambda plan, out: _webdepot(plan, out, processes=1),
    "webdepot-2": lambda plan, out: _webdepot(plan, out, processes=2),
    "apart": _apart,
    "httrack": _httrack,
    "scrapy": _scrapy,
}


OURS = ("webdepot", "webdepot-2", "apart")
IN_TURNS = ("wget", *OURS)


def _measured(name: str, plan: Plan, folder: Path, work: Path, server: int) -> Run:
    out = folder / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = COMMANDS[name](plan, out)
    if isinstance(command, str):
        nothing = dict.fromkeys(
            ("pages", "pages_per_s", "cpu_s_per_1000", "server_cpu_s_per_1000", "requests", "asked_twice"), 0
        )
        return Run(name=name, connections=0, peak_mb=0, note=command, **nothing)
    log = work / "access.log"
    begin, server_s = _log_size(log), _cpu_s(server)
    started_s = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=(out / "errors.txt").open("wb"),
        cwd=Path(__file__).parents[1],
    )
    status, usage = _waited(process)
    took_s = time.monotonic() - started_s
    server_s = _cpu_s(server) - server_s
    time.sleep(1.5)  # nginx writes its log once a second
    note = (
        ""
        if status == 0 or name == "wget"
        else f"ended with {status}: {(out / 'errors.txt').read_text()[-300:]}"
    )
    if name in OURS:
        reports = [json.loads(path.read_text()) for path in out.glob("home*/bench.json")]
        took_s = max(
            report["seconds"] for report in reports
        )  # without starting Python and its processes, and creating the archive
        note = note or _compared(plan, out, sum(report["waiting"] for report in reports))
    return _counted(name, log, begin, took_s, (*usage, server_s), note)


def _cpu_s(server: int) -> float:
    """CPU time so far of a running process and its children."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if server in (int(path.parent.name), int(values[1])):
            ticks += int(values[11]) + int(values[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _waited(process: subprocess.Popen[bytes]) -> tuple[int, tuple[float, float]]:
    """Exit code, CPU time and peak memory, including child processes."""
    until_s = time.monotonic() + LIMIT_S
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        if time.monotonic() > until_s:
            process.kill()
        time.sleep(0.02)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _counted(
    name: str, log: Path, begin: int, took_s: float, usage: tuple[float, float, float], note: str
) -> Run:
    asked: collections.Counter[tuple[str, str]] = collections.Counter()
    connections, pages = set(), set()
    with log.open() as file:
        file.seek(begin)
        for line in file:
            _, _, address, status, target, connection = line.split()
            asked[address, target] += 1
            connections.add(connection)
            if status == "200" and _PAGE.fullmatch(target):
                pages.add((address, target))
    return Run(
        name=name,
        pages=len(pages),
        pages_per_s=round(len(pages) / took_s, 1),
        cpu_s_per_1000=round(usage[0] / max(len(pages), 1) * 1000, 3),
        server_cpu_s_per_1000=round(usage[2] / max(len(pages), 1) * 1000, 3),
        requests=sum(asked.values()),
        asked_twice=sum(count > 1 for count in asked.values()),
        connections=len(connections),
        peak_mb=round(usage[1], 1),
        note=note,
    )


def _compared(plan: Plan, out: Path, waiting: int) -> str:
    """Compare our containers with the list of the generator."""
    from webdepot.container.reader import iter_records
    from webdepot.model import RecordKind

    held: collections.Counter[str] = collections.Counter()
    for path in sorted(out.glob("home*/harvests/*/warc/**/*.warc.gz")):
        with path.open("rb") as stream:
            for record in iter_records(
                stream, path.name, on_finding=lambda finding: print(finding, file=sys.stderr)
            ):
                if record.kind in (RecordKind.RESPONSE, RecordKind.REVISIT):
                    held[record.url] += 1
    wanted = site.expected(plan)
    missing, foreign = wanted.keys() - held.keys(), held.keys() - wanted.keys()
    twice = [url for url, count in held.items() if count > 1]
    if not missing and not foreign and not twice:
        return f"complete: {len(wanted)} addresses, each once; waiting {waiting}"
    return f"NOT COMPLETE: {len(missing)} missing {sorted(missing)[:3]}, {len(foreign)} foreign {sorted(foreign)[:3]}, {len(twice)} twice"


def _wait_for_server(plan: Plan) -> None:
    for _ in range(100):
        try:
            urlopen(plan.seeds[0]).read()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("nginx did not start")


def _log_size(log: Path) -> int:
    time.sleep(1.2)
    return log.stat().st_size if log.exists() else 0


def _print_results(plan: Plan, taken: dict[str, list[Run]], path: str | None) -> None:
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(
        f"{len(plan.hosts)} hosts, {len(plan.hosts) * plan.pages} pages of {plan.page_bytes // 1000} KB; "
        f"{machine}"
    )
    print(
        f"{'tool':12} {'pages':>6} {'pages/s':>8} {'× wget':>7} {'CPU s/1000':>10} {'nginx':>6} {'asked':>8} "
        f"{'twice':>6} "
        f"{'conn.':>6} {'MB':>6}  note"
    )
    base = _speed(taken.get("wget", []))
    for run in (run for runs in taken.values() for run in runs):
        ratio = f"{run.pages_per_s / base:.2f}" if base else "-"
        print(
            f"{run.name:12} {run.pages:6d} {run.pages_per_s:8.1f} {ratio:>7} {run.cpu_s_per_1000:10.3f} "
            f"{run.server_cpu_s_per_1000:6.3f} "
            f"{run.requests:8d} {run.asked_twice:6d} {run.connections:6d} {run.peak_mb:6.1f}  {run.note}"
        )
    one, two, apart = (_speed(taken.get(name, [])) for name in OURS)
    if base and one:
        print(f"one process fetches {one / base:.2f} times the pages of wget (medians)")
    if one and two:
        print(f"two processes fetch {two / one:.2f} times the pages of one (medians)")
    if one and two and apart:
        print(
            f"two separate harvests fetch {apart / one:.2f} times the pages of one: two processes reach "
            f"{two / apart:.2f} of that"
        )
    if path:
        rows = [asdict(run) for runs in taken.values() for run in runs]
        Path(path).write_text(json.dumps({"machine": machine, "runs": rows}, indent=1))


def _speed(runs: list[Run]) -> float:
    return statistics.median(run.pages_per_s for run in runs) if runs else 0.0


if __name__ == "__main__":
    main()
