"""Lists of pages of WACZ files: what is read of them can be stored."""

from io import BytesIO

from webdepot.depot.bundle import page_lists

TOKENS = (
    b'{"format": "json-pages-1.0", "id": "pages"}\n', b'{"url": "https://example.org/", ', b'"ts": ',
    b'"2024-05-17T12:30:01.123Z"', b'"2024-05-17T12:30:01"', b"1715949001000", b'"title": "x", ',
    b'"text": "', b'"seed": true', b"}\n", b"\n", b'"\\ud800"', b"null", b"1e400", b"NaN", b"-1", b"[", b"{",
)  # fmt: skip


def one_input(data: bytes) -> None:
    for page in page_lists.iter_pages(BytesIO(data)):
        assert page.url.startswith(("http://", "https://"))
        assert not page.timestamp or (len(page.timestamp) == 14 and page.timestamp.isdigit())
        for text in (page.url, page.title, page.text):
            text.encode()
