"""Pages rewritten on the server for replay, their title, views of XML, and comparison of two versions."""

from io import BytesIO

from fuzz.targets.html_links import TOKENS as TOKENS
from webdepot.access import compare
from webdepot.access.replay import server_rewrite, title, worker_page, xml_view

_PAGE = "http://a.example/dir/page.html"
_MARK = "http://archive.example/x/"


def one_input(data: bytes) -> None:
    text = server_rewrite.text_of(data, "text/html")
    server_rewrite.html(text, _PAGE, lambda address: _MARK + address)
    assert len(title.of_html(BytesIO(data), "text/html")) <= title.LONGEST
    worker_page.prepared(data, "text/html; charset=windows-1252", _PAGE)
    worker_page.prepared(data, "text/html", _PAGE)
    xml_view.view_of(data, _PAGE)
    content = compare.read(data, "text/html", _PAGE)
    half = len(content.lines) // 2
    compare.of_lines(content.lines[:half], content.lines[half:])
    server_rewrite.srcset(text[:2000], _PAGE, lambda address: _MARK + address)
    server_rewrite.refresh(text[:2000], _PAGE, lambda address: _MARK + address)
