"""The replay worker: the program in the reader's browser that shows archived pages.

    settings        made here, the same for every query and on the host of every archived site
    static/worker.js   our guard: what reaches wabac.js, and what leaves it
    vendor/sw.js    wabac.js, unchanged

They are sent as one script. Browsers install a worker again when its address changes, so its address has a
version, the checksum of the whole.
"""

import hashlib
import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.replay.headers import CONNECTIONS, PREFIX, WORKER_POLICY
from webdepot.errors import ConfigError
from webdepot.web.security import page_policy
from webdepot.web.site import Site, site_of

PATH = "/sw.js"
INSIDE_SCRIPT = "/-/archived_page.js"
"""Our script in every archived page."""


def send(request: Request) -> Response:
    """The worker. A query changes nothing: archived scripts may register it, too."""
    script = _script(site_of(request).frame_url)
    headers = {
        "Content-Security-Policy": WORKER_POLICY,
        "Cache-Control": "no-cache",
        "ETag": f'"{_version(script)}"',
        "X-Content-Type-Options": "nosniff",
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(script, media_type="text/javascript", headers=headers)


def path_for(site: Site) -> str:
    """The address to register the worker with."""
    return f"{PATH}?{_version(_script(site.frame_url))}"


def check_installed() -> None:
    """ConfigError when wabac.js is missing."""
    if not _file("vendor/sw.js").exists():
        raise ConfigError(
            "The replay worker for browsers (web/vendor/sw.js) is not installed. "
            "Fetch it: python scripts/vendor.py"
        )


@cache
def _script(frame_url: str) -> bytes:
    settings = {
        "query": f"?replayPrefix=&injectScripts={INSIDE_SCRIPT}",
        "script": INSIDE_SCRIPT,
        "first": _file("static/cookies.js").read_text("utf-8"),
        "prefix": PREFIX.lower(),
        "headers": [
            ("Content-Security-Policy", page_policy(frame_url)),
            CONNECTIONS,
            ("Referrer-Policy", "same-origin"),
            ("X-DNS-Prefetch-Control", "off"),
        ],
    }
    head = f"self.webdepot = {json.dumps(settings)};\n".encode()
    return head + _file("static/worker.js").read_bytes() + b"\n" + _file("vendor/sw.js").read_bytes()


@cache
def _version(script: bytes) -> str:
    return hashlib.sha256(script).hexdigest()[:16]


def _file(name: str) -> Path:
    return Path(str(files("webdepot.web"))) / name
