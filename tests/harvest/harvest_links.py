"""The links that are extracted from a body."""

from io import BytesIO

from webdepot.container.http import HttpHead, parse_head
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.model import Hop
from webdepot.url import Url

PAGE = Url("http://a.example/dir/page.html")
L, E, R, X, M = Hop.LINK, Hop.EMBED, Hop.REDIRECT, Hop.SPECULATIVE, Hop.MANIFEST


def head(mime: str = "text/html; charset=utf-8", status: int = 200, **headers: str) -> HttpHead:
    lines = [f"HTTP/1.1 {status} x", *([f"Content-Type: {mime}"] if mime else [])]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return parse_head("\r\n".join([*lines, "", ""]).encode("utf-8"))


def found(
    body: str | bytes, given_head: HttpHead | None = None, url: Url = PAGE, limits: LinkLimits | None = None
) -> dict[str, Hop]:
    data = body.encode() if isinstance(body, str) else body
    return dict(extract(url, given_head or head(), BytesIO(data), limits or LinkLimits()).links)


def of(path: str) -> str:
    return f"http://a.example/{path}"
