"""Pages rewritten on the server for replay without scripts, their title, and comparison of two versions."""

from io import BytesIO

from fuzz.targets.html_links import TOKENS as TOKENS
from webdepot.access import compare
from webdepot.access.replay import body, rewrite, title

_PAGE = "http://a.example/dir/page.html"
_MARK = "http://archive.example/x/"


def one_input(data: bytes) -> None:
    text = rewrite.text_of(data, "text/html")
    rewrite.html(text, _PAGE, lambda address: _MARK + address)
    assert len(title.of_html(BytesIO(data), "text/html")) <= title.LONGEST
    body.with_ended_embeds(BytesIO(data)).read()
    content = compare.read(data, "text/html", _PAGE)
    half = len(content.lines) // 2
    compare.of_lines(content.lines[:half], content.lines[half:])
    rewrite.srcset(text[:2000], _PAGE, lambda address: _MARK + address)
    rewrite.refresh(text[:2000], _PAGE, lambda address: _MARK + address)
