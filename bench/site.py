"""A generated site over many hosts, and the list of everything that a complete harvest must contain if it
obeys robots.txt.

The same seed gives the same site. Each host has pages of a given size in a tree, with links to other pages
and hosts, images, style sheets and scripts, redirects, missing pages, a few pages with identical bytes, an
endless path, a folder disallowed by robots.txt, and links to a host outside the scope. Used by
`bench.harvest` (served by nginx) and, small, by the tests.
"""

import random
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

OUTSIDE = "http://outside.invalid/never"
TRAP_TURNS = 3
"""How often a path segment may repeat before it counts as a trap (`ScopeLimits.repeats`)."""
_WORDS = [
    "archive",
    "library",
    "record",
    "catalogue",
    "reader",
    "shelf",
    "harvest",
    "culture",
    "memory",
    "letter",
    "institute",
    "history",
    "paper",
    "volume",
    "index",
    "edition",
    "journal",
    "article",
    "map",
    "photograph",
    "manuscript",
    "collection",
    "exhibition",
    "museum",
    "restoration",
    "digital",
    "keeping",
    "century",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    path: str
    status: int = 200
    mime: str = "text/html"
    body: bytes = b""
    location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    hosts: tuple[str, ...]
    """Origins, such as http://127.0.0.2:8800"""
    pages: int
    """Pages of each host."""
    page_bytes: int = 15_000
    seed: int = 20261115
    pictures: int = 20
    duplicates: int = 5
    redirects: int = 10
    missing: int = 5

    @property
    def seeds(self) -> tuple[str, ...]:
        return tuple(f"{host}/" for host in self.hosts)


def iter_answers(plan: Plan, number: int) -> Iterator[Answer]:
    """Everything on one host, including robots.txt and the disallowed folder; the endless path as its prefix
    `/trap/`.
    """
    chance = random.Random(f"{plan.seed}-{number}")
    paragraphs = [" ".join(chance.choices(_WORDS, k=60)) for _ in range(80)]
    yield Answer(
        path="/robots.txt",
        mime="text/plain",
        body=b"User-agent: *\nDisallow: /closed/\nAllow: /closed/open.html\n",
    )
    yield Answer(
        path="/style.css",
        mime="text/css",
        body=b"body { background: url(/img/0.png) }\n" + b"p { margin: 1em }\n" * 60,
    )
    yield Answer(path="/script.js", mime="text/javascript", body=b"// nothing to see\n" * 60)
    for picture in range(plan.pictures):
        yield Answer(
            path=f"/img/{picture}.png", mime="image/png", body=b"\x89PNG\r\n\x1a\n" + chance.randbytes(2000)
        )
    for page in range(plan.pages):
        path = "/" if page == 0 else f"/p/{page}.html"
        yield Answer(path=path, body=_page(plan, number, page, chance, paragraphs))
    twin = b"<!doctype html><title>Twin</title><p>" + paragraphs[0].encode() * 8
    for copy in range(plan.duplicates):
        yield Answer(path=f"/same/{copy}.html", body=twin)
    for redirect in range(plan.redirects):
        yield Answer(path=f"/r/{redirect}", status=302, location=f"/p/{1 + redirect % (plan.pages - 1)}.html")
    yield Answer(path="/trap/", body=b'<!doctype html><title>Deeper</title><a href="deeper/">deeper</a>')
    yield Answer(path="/closed/secret.html", body=b"<!doctype html><title>Closed</title>")
    yield Answer(path="/closed/open.html", body=b"<!doctype html><title>Open by exception</title>")


def expected(plan: Plan) -> dict[str, int]:
    """Every address that must be fetched exactly once, with the status of the response."""
    statuses: dict[str, int] = {}
    for number, host in enumerate(plan.hosts):
        for answer in iter_answers(plan, number):
            if answer.path != "/closed/secret.html":
                statuses[host + answer.path] = answer.status
        statuses[f"{host}/sitemap.xml"] = 404  # requested if robots.txt does not name one
        for missing in range(plan.missing):
            statuses[f"{host}/missing/{missing}.html"] = 404
        for turn in range(1, TRAP_TURNS + 1):
            statuses[f"{host}/trap/{'deeper/' * turn}"] = 200
    return statuses


def write(plan: Plan, folder: Path) -> None:
    """Write the files for nginx, one folder for each host; redirects and the trap are in `nginx_config`."""
    for number, host in enumerate(plan.hosts):
        root = folder / host.partition("://")[2].rpartition(":")[0]
        for answer in iter_answers(plan, number):
            if answer.status != 200:
                continue
            path = root / (answer.path.lstrip("/") + ("index.html" if answer.path.endswith("/") else ""))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(answer.body)


def nginx_config(plan: Plan, folder: Path, work: Path, port: int) -> str:
    """A configuration with little work for the server, because it shares the machine with the crawler."""
    redirects = "".join(
        f"    location = /r/{redirect} {{ return 302 /p/{1 + redirect % (plan.pages - 1)}.html; }}\n"
        for redirect in range(plan.redirects)
    )
    # Files stay open: opening one for each request would be a quarter of the work.
    most_open = min(100_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return f"""
worker_processes 1; worker_rlimit_nofile {most_open}; daemon off; pid {work}/nginx.pid; error_log {work}/error.log crit;
events {{ worker_connections 2000; }}
http {{
  types {{ text/html html; text/css css; text/javascript js; image/png png; text/plain txt; }}
  log_format site '$msec $request_time $server_addr $status $request_uri $connection';
  access_log {work}/access.log site buffer=256k flush=1s;
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u;
  scgi_temp_path {work}/s;
  sendfile on; tcp_nopush on; etag off; keepalive_requests 1000000; keepalive_timeout 300s;
  open_file_cache max={most_open * 3 // 4} inactive=1h; open_file_cache_valid 1h; open_file_cache_errors on;
  server {{
    listen {port} reuseport backlog=4096; root {folder}/$server_addr;
{redirects}    location /trap/ {{ rewrite ^ /trap/index.html break; }}
  }}
}}
"""


def warm(plan: Plan) -> None:
    """Request everything once, so that the first program measured does not wait for files to be opened."""
    for number, host in enumerate(plan.hosts):
        connection = HTTPConnection(host.partition("://")[2])
        for answer in iter_answers(plan, number):
            connection.request("GET", answer.path)
            connection.getresponse().read()
        connection.close()


def _page(plan: Plan, number: int, page: int, chance: random.Random, paragraphs: list[str]) -> bytes:
    links = [f"/p/{child}.html" for child in (2 * page + 1, 2 * page + 2) if child < plan.pages]
    links += [f"/p/{chance.randrange(1, plan.pages)}.html" for _ in range(12)]
    links += [f"{chance.choice(plan.hosts)}/p/{chance.randrange(1, plan.pages)}.html" for _ in range(3)]
    if page == 0:
        links += [f"{plan.hosts[(number + step) % len(plan.hosts)]}/" for step in (1, 2)]
        links += [f"/same/{copy}.html" for copy in range(plan.duplicates)] + [
            f"/r/{redirect}" for redirect in range(plan.redirects)
        ]
        links += [f"/missing/{missing}.html" for missing in range(plan.missing)]
        links += ["/trap/", "/closed/secret.html", "/closed/open.html", OUTSIDE]
    shown = range(plan.pictures) if page == 0 else [chance.randrange(plan.pictures) for _ in range(4)]
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page {page} of host '
        f"{number}</title>",
        '<link rel="stylesheet" href="/style.css"><script src="/script.js"></script></head><body>',
        *(f'<img src="/img/{picture}.png" alt="Picture {picture}">' for picture in shown),
        *(
            f'<p><a href="{link}">{chance.choice(_WORDS)} {position}</a></p>'
            for position, link in enumerate(links)
        ),
    ]
    size = sum(map(len, parts))
    while size < plan.page_bytes:
        paragraph = f"<p>{chance.choice(paragraphs)}</p>\n"
        parts.append(paragraph)
        size += len(paragraph)
    return "".join([*parts, "</body></html>"]).encode()
