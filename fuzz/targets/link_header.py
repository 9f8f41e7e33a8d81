"""Headers with addresses: Link, Location, Refresh, Content-Location, X-Robots-Tag."""

from io import BytesIO

from webdepot.container.http import HttpHead
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.url import Url

TOKENS = (
    b"<http://b.example/>", b"</a>; rel=next", b'; rel="stylesheet"', b"; rel=preload; as=font", b", ",
    b"; title*=UTF-8''%e4", b'"', b"\\", b"<", b">", b"=", b"0; url=", b"5;URL='", b"noarchive, ",
    b"webdepot: nofollow", b"//", b"javascript:", b"data:text/html,", b"\xc3\xa4", b"; anchor=",
)  # fmt: skip
_PAGE = Url("http://a.example/dir/page.html")
_NAMES = ("Link", "Location", "Refresh", "Content-Location", "X-Robots-Tag")


def one_input(data: bytes) -> None:
    value = data.decode("latin-1")
    for status in (200, 302):
        headers = tuple((name, value) for name in _NAMES)
        head = HttpHead(version="HTTP/1.1", status=status, reason="", headers=headers)
        extracted = extract(_PAGE, head, BytesIO(), LinkLimits(agent="webdepot"))
        assert "Failed" not in extracted.note, extracted.note
