"""What does the scope of an organisation cost a whole harvest? Used by `bench.discovery`.

A site on 40 loopback addresses links to many distinct hosts (25 links per page, each host linked from ten
pages). Two pairs:

- Politeness off, every host decided by an earlier harvest: the cost of looking decisions up. Compared with a
  plain domain scope of the same pages.
- Politeness on (with a short delay, so that it ends), every host new and without an address: the cost of
  deciding while the harvest waits for pages anyway. A name server on loopback answers.
"""

import asyncio
import math
import multiprocessing
import socket
import struct
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from webdepot.archive import Archive
from webdepot.selection.domains import organisations
from webdepot.selection.domains.ownership_evidence import HostOrigin
from webdepot.selection.domains.profile import OrganisationProfile, SourcedValue
from webdepot.selection.domains.verdict import HostJudgement
from webdepot.services.admin import setup
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions

ROOT = "uni-bench.example"
MEMBERS = 40
LINKS, LINKED_BY = 25, 10
ROUNDS = 4
PAUSE_S = 0.2
_FILLING = "<p>" + "Die Fakultät stellt ihre Einrichtungen vor. " * 200 + "</p>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Wall and CPU time of a harvest; on a busy machine CPU time varies less."""

    wall_s: float
    processor_s: float

    def or_better(self, other: "Took") -> "Took":
        return Took(
            wall_s=min(self.wall_s, other.wall_s), processor_s=min(self.processor_s, other.processor_s)
        )


def measure(hosts: int) -> dict[str, float]:
    """Seconds of the four harvests, the best of several alternating rounds, and the ratio of each pair."""
    pages = hosts * LINKED_BY // LINKS // MEMBERS
    with tempfile.TemporaryDirectory(prefix="webdepot-bench-") as folder:
        web_port, dns_port = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM)
        spawn = multiprocessing.get_context("spawn")
        children = [
            spawn.Process(target=serve_pages, args=(web_port, pages), daemon=True),
            spawn.Process(target=serve_names, args=(dns_port,), daemon=True),
        ]
        for child in children:
            child.start()
        try:
            wait_for(web_port)
            ports = (web_port, dns_port)
            plain = known = Took(wall_s=math.inf, processor_s=math.inf)
            for number in range(ROUNDS):
                plain = plain.or_better(harvest(Path(folder) / f"plain{number}", ports, pages))
                known = known.or_better(harvest(Path(folder) / f"known{number}", ports, pages, by="known"))
            polite = harvest(Path(folder) / "polite", ports, pages, pause_s=PAUSE_S)
            new = harvest(Path(folder) / "new", ports, pages, pause_s=PAUSE_S, by="new")
        finally:
            for child in children:
                child.terminate()
                child.join()
    return {
        "hosts": hosts,
        "pages": pages * MEMBERS,
        "politeness off, domain scope, s": round(plain.wall_s, 2),
        "politeness off, organisation, hosts known, s": round(known.wall_s, 2),
        "ratio, hosts known": round(known.wall_s / plain.wall_s, 3),
        "ratio of processor time, hosts known": round(known.processor_s / plain.processor_s, 3),
        "polite, domain scope, s": round(polite.wall_s, 2),
        "polite, organisation, hosts new, s": round(new.wall_s, 2),
        "ratio, hosts new": round(new.wall_s / polite.wall_s, 3),
    }


def harvest(home: Path, ports: tuple[int, int], pages: int, *, pause_s: float = 0.0, by: str = "") -> Took:
    """One harvest; `by` an organisation for which foreign hosts are already known, or new."""
    members = "\n".join(
        f'"{member(number)}" = "127.0.1.{number + 1}:{ports[0]}"' for number in range(MEMBERS)
    )
    setup.create(
        home,
        settings=f"""
[harvest]
allow_private = true
delay_s = {pause_s}
workers = 64
[harvest.connect_to]
{members}
[discovery]
resolver = "127.0.0.1:{ports[1]}"
http_port = {ports[0]}
whois = "off"
rdap_bootstrap = "{home}"
""",
    )
    with Archive.open(home) as archive:
        options = HarvestOptions.from_config(archive.config)
        if by:
            remember(archive, pages if by == "known" else 0)
            options = replace(options, scope="host", organisation=ROOT, host_rules=("BelongsTo",))
        seeds = [f"http://{member(number)}/0.html" for number in range(MEMBERS)]
        begun = runner.start_or_resume(archive, seeds, options)
        started_s, worked_s = time.monotonic(), time.process_time()
        done = runner.run(archive, begun)
        took = Took(wall_s=time.monotonic() - started_s, processor_s=time.process_time() - worked_s)
    if done.counts["fetched"] < pages * MEMBERS:
        raise RuntimeError(f"{home.name}: {done.counts} instead of {pages * MEMBERS} pages")
    return took


def remember(archive: Archive, pages: int) -> None:
    """The profile of the organisation, and a decision from yesterday about each host these pages link to."""
    now = archive.clock()
    profile = OrganisationProfile(
        root=ROOT, host=ROOT, domains=(SourcedValue(value=ROOT, source="bench", at=now),)
    )
    outside = {host for number in range(MEMBERS) for page in range(pages) for host in strangers(number, page)}
    verdicts = {
        **dict.fromkeys(sorted(outside), False),
        **{member(number): True for number in range(MEMBERS) if pages},
    }
    judged = [
        HostJudgement(
            host=host,
            domain=host.partition(".")[2],
            origin=HostOrigin.MEMBER,
            score=0.99 if own else 0.01,
            own=own,
            signs=(),
            is_resolved=True,
            is_inside=False,
            at=now,
        )
        for host, own in verdicts.items()
    ]
    with archive.database.transaction() as connection:
        organisation = organisations.save(connection, profile, now=now)
        organisations.save_hosts(connection, organisation.id, [(item, 2, ()) for item in judged], now=now)


def member(number: int) -> str:
    return f"inst{number}.{ROOT}"


def strangers(number: int, page: int) -> list[str]:
    """The hosts that a page links to; each is linked from ten pages."""
    return [f"www.site-{number}-{page // LINKED_BY}-{link}.example" for link in range(LINKS)]


# --- the servers, each in a separate process ---


def serve_pages(port: int, pages: int) -> None:
    asyncio.run(_serve_pages(port, pages))


async def _serve_pages(port: int, pages: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                number = int(writer.get_extra_info("sockname")[0].rpartition(".")[2]) - 1
                status, body = page_of(number, path, pages)
                fields = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(fields.encode() + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", port, backlog=256)
    async with server:
        await server.serve_forever()


def page_of(number: int, path: str, pages: int) -> tuple[str, bytes]:
    name = path.strip("/").removesuffix(".html")
    if not name.isdigit() or int(name) >= pages:
        return "404 Not Found", b"<p>nothing here"
    page = int(name)
    inner = [f"/{child}.html" for child in (2 * page + 1, 2 * page + 2) if child < pages]
    links = [f"http://{host}/" for host in strangers(number, page)] + inner
    listed = "".join(f'<li><a href="{link}">{link}</a>' for link in links)
    return "200 OK", f"<!doctype html><title>{page}</title><ul>{listed}</ul>{_FILLING}".encode()


def serve_names(port: int) -> None:
    """A name server that knows only the hosts of the organisation (others: NXDOMAIN)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", port))
        while True:
            question, sender = line.recvfrom(1500)
            line.sendto(name_answer(question), sender)


def name_answer(question: bytes) -> bytes:
    end = question.index(b"\0", 12) + 5
    name, kind = question[12 : end - 4], question[end - 4 : end - 2]
    if ROOT.partition(".")[0].encode() not in name:
        return question[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question[12:end]
    number = int(bytes(filter(bytes(range(48, 58)).__contains__, name)) or b"0")
    has_address = kind == b"\0\1"
    answer = (
        b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 300, 4) + bytes((127, 0, 1, number + 1))
        if has_address
        else b""
    )
    return question[:2] + struct.pack(">HHHHH", 0x8180, 1, int(has_address), 0, 0) + question[12:end] + answer


def free_port(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the web server had not started by {datetime.now(UTC):%H:%M:%S}")
