"""Pages rewritten on the server: /{collection}/{timestamp}ns_/{url}, for clients without a service worker or
without scripts.

HTML and style sheets are rewritten (`access/replay/rewrite.py`), everything else is sent as it is; all of it
without scripts.
"""

from starlette.requests import Request

from webdepot.access.replay import rewrite
from webdepot.access.replay.body import negotiated
from webdepot.services.access.replay import Replayed
from webdepot.web.replay import address
from webdepot.web.replay.address import Address
from webdepot.web.site import site_of

MODIFIER = "ns_"
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


def find_rewritten(request: Request, found: Address, opened: Replayed) -> tuple[bytes, str] | None:
    """The rewritten body and its type; None for what is sent as it is. Reads the payload only where it is
    rewritten.
    """
    mime = opened.capture.mime
    if mime not in _PAGES and mime != "text/css":
        return None
    stream = negotiated(opened.payload, opened.head, "identity").stream
    data = stream.read(rewrite.MOST_BYTES + 1)
    if len(data) > rewrite.MOST_BYTES:
        return data + stream.read(), mime
    said = (opened.head.get("content-type") if opened.head else None) or mime
    text = rewrite.text_of(data, said)

    def lead(absolute: str) -> str:
        return address.path_of(found.collection, opened.capture.timestamp + MODIFIER, absolute)

    change = rewrite.css if mime == "text/css" else rewrite.html
    return change(text, opened.capture.url, lead).encode("utf-8", "replace"), f"{mime}; charset=utf-8"


def policy_of(request: Request) -> tuple[str, str]:
    return "Content-Security-Policy", rewrite.still_policy(site_of(request).frame_url)
