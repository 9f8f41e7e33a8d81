"""Links in JSON, playlists, plain text and scripts."""

from fuzz.body_links import read

TOKENS = (
    b'{"url": "', b'"image": ', b'"@id": ', b"http://a.example/", b"#EXTM3U\n",
    b"#EXT-X-KEY:METHOD=AES-128,URI=\"", b"Sitemap: ", b"a.css", b"'./x.js'", b"[", b"]", b"}", b'"\\u002f"',
    b"\\/", b"`", b"//b.example/y", b"import('", b".png", b"?v=", b'"icons": [{"src": "a.png"}]', b"NaN",
    b"1e999",
)  # fmt: skip
_TYPES = (
    "application/json",
    "application/manifest+json",
    "application/vnd.apple.mpegurl",
    "text/plain",
    "text/javascript",
    "text/css",
)


def one_input(data: bytes) -> None:
    for mime in _TYPES:
        read(data, mime, allowed=frozenset({"JSONDecodeError", "RecursionError", "ValueError"}))
