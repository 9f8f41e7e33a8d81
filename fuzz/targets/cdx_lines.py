"""CDX and CDXJ files of others; what was read is written and read again."""

from webdepot import cdxj
from webdepot.errors import InputError
from webdepot.index import cdx

TOKENS = (
    b" CDX N b a m s k r M S V g\n", b" CDX N b a m s k r V g\n", b"CDX a b V g\n",
    b"org,example)/ 20200101000000 ", b"http://example.org/ ", b"text/html 200 ", b"warc/revisit",
    b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA - - ", b"315 0 a.warc.gz\n", b'{"url": "http://example.org/", ',
    b'"mime": "text/html", ', b'"status": "200", ', b'"length": "315", ', b'"offset": "0", ',
    b'"filename": "a.warc.gz"}\n', b'"record": "resource", ', b'"refers-to-url": "", ', b"Infinity", b"-1",
    b"null", b"!meta {}", b"#", b"1e400", b'"\\ud800"', b"[", b"{",
)  # fmt: skip


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    try:
        for capture in cdxj.read(lines, name="fuzz"):
            again = cdxj.parse(cdxj.line(capture))
            assert again == capture, f"{again} is not {capture}"
    except InputError:
        pass
    for capture in cdx.read(lines, name="fuzz"):
        for columns in cdx.HEADS:
            written = cdx.line(capture, columns)
            assert len(written.split()) == columns, written
            again = next(cdx.read([written], name="again"))
            # Control characters at an end are not part of an address, but are written percent-encoded.
            if capture.url.isprintable():
                assert (again.key, again.location.offset) == (capture.key, capture.location.offset)
