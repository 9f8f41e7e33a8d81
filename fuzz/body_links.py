"""Reads the links of a body as the harvester does, and checks what must be true of them."""

from io import BytesIO

from webdepot.container.http import HttpHead
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.url import Url, find_canonical

_PAGE = Url("http://a.example/dir/page")
_LIMITS = LinkLimits(agent="webdepot", guess=True)
_NOTED = ("linksFailed", "linksPartFailed")


def read(data: bytes, mime: str, *, allowed: frozenset[str] = frozenset()) -> None:
    """Read the links of a body. `allowed` are the errors of libraries that the log may name for an unreadable
    body.
    """
    head = HttpHead(version="HTTP/1.1", status=200, reason="", headers=(("Content-Type", mime),))
    extracted = extract(_PAGE, head, BytesIO(data), _LIMITS)
    for url, _ in extracted.links:
        assert find_canonical(url) == url, f"{url!r} is not canonical"
    for note in filter(None, extracted.note.split(",")):
        name, _, error = note.partition(":")
        assert name not in _NOTED or error in allowed, note
