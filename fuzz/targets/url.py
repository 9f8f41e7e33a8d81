"""Addresses: canonical form and keys (SURT) are stable, keys never fail, ranges are not empty."""

from webdepot import url
from webdepot.access import fuzzy
from webdepot.errors import InputError
from webdepot.exchange import unpacked, urn

TOKENS = (
    b"http://", b"https://", b"ftp://", b"www.", b"example.org", b"/", b"?", b"#", b"@", b":80", b":443",
    b"%2e", b"%2F", b"/../", b"/./", b"*.", b"/*", b"[::1]", b"0x7f.1", b"\xc3\xa4", b"xn--", b"jsessionid=",
    b";", b"&", b"=", b"%", b"%ff", b"urn:nbn:de:", b"dns:", b"\t", b"\\",
    b"phpsessid=0123456789abcdef0123456789abcdef", b"//", b"+", b"\xed\xa0\x80",
)  # fmt: skip


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"\xff" else "replace")
    key = url.key(text)
    assert key and " " not in key and "\n" not in key
    fuzzy.without_busters(key)
    canonical = url.find_canonical(text)
    if canonical is not None:
        assert url.find_canonical(canonical) == canonical, f"{canonical!r} is not stable"
        # Browsers drop control characters; keys keep those inside of an address.
        assert url.key(canonical) == url.key(text) or not text.isprintable() or "#" in text, "the key changes"
        url.domain_of(canonical)
        assert url.host_of(canonical)
        unpacked.place([canonical])
    url.find_canonical(text, "http://base.example/dir/page?query")
    urn.is_valid(text)
    for match in (None, *url.UrlMatch):
        try:
            start, stop = url.key_range(text, match)
            assert start < stop
        except InputError:
            continue
    url.from_typed(text)
