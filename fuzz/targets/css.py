"""Style sheets: addresses in them, and rewriting, which must change nothing but addresses."""

from webdepot.access.replay import server_rewrite
from webdepot.harvest.links import css

TOKENS = (
    b"@import '", b'@import "', b"@import url(", b"url(", b"url('", b'url("', b")", b"/*", b"*/", b"src(",
    b"image-set(", b"\\26 ", b"\\", b"\\\n", b"@namespace ", b";", b"{", b"}", b"1x, ", b"'a.png'", b"a.png",
    b"data:,", b"#x", b"type('image/png')", b"-webkit-image-set(", b" ", b"\n",
)  # fmt: skip
_PAGE = "http://a.example/dir/style.css"
_MARK = "http://archive.example/x/"


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for address, _ in css.references(text):
        assert isinstance(address, str)
    same = server_rewrite.css(text, _PAGE, lambda _: None)
    assert _plain(same) == _plain(text), "rewriting without a lead changes the style sheet"
    rewritten = server_rewrite.css(text, _PAGE, lambda address: _MARK + address)
    kept = rewritten.split(_MARK)
    assert len("".join(kept)) >= len(text) - sum(map(len, kept[1:])), "text was lost"


def _plain(text: str) -> str:
    """The text without quotes: they may be added around an address."""
    return text.replace("'", "").replace("%27", "")
