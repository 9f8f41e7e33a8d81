"""Keys of addresses.

The PyPI package `surt` is the reference, because the field's indexes are made with it. Where we differ on
purpose, the address is in `DIFFERENCES` with the reason.
"""

import itertools
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from url_samples import HEX24, HEX32, addresses, printable
from webdepot import url

with warnings.catch_warnings():
    # The reference has invalid escapes in its patterns; that is its business.
    warnings.simplefilter("ignore")
    from surt import surt

KEYS = [
    ("http://example.org", "org,example)/"),
    ("http://example.org/", "org,example)/"),
    ("https://www.Example.org/News/?b=2&a=1", "org,example)/news?a=1&b=2"),
    ("http://www2.example.org:80/index.html#top", "org,example)/index.html"),
    ("https://example.org:443/a", "org,example)/a"),
    ("https://example.org:80/a", "org,example:80)/a"),
    ("http://example.org:8080/a/", "org,example:8080)/a"),
    ("http://user:secret@example.org/a", "org,example)/a"),
    ("http://example.org./a", "org,example)/a"),
    ("http://EXAMPLE.org/%7Euser/%41", "org,example)/~user/a"),
    ("http://example.org/a%2520b", "org,example)/a%20b"),
    ("http://example.org/a b", "org,example)/a%20b"),
    ("http://example.org/?", "org,example)/"),
    ("http://example.org?q", "org,example)/?q"),
    ("http://example.org/a//b///c", "org,example)/a/b/c"),
    ("http://example.org/a/./b/../c", "org,example)/a/c"),
    ("http://example.org/a%2f%2e%2e%2fb", "org,example)/b"),
    ("http://192.168.1.1/x", "1,1,168,192)/x"),
    ("http://3232235777/x", "1,1,168,192)/x"),
    ("http://[2001:db8::1]:8080/x", "2001:db8::1:8080)/x"),
    ("http://b\u00fccher.example/\u00e9", "example,xn--bcher-kva)/%c3%a9"),
    ("http://%77ww.example.org/", "org,example)/"),
    ("ftp://ftp.example.org/Pub/", "org,example,ftp)/pub"),
    ("dns:WWW.Example.org", "dns:www.example.org"),
    ("urn:ISBN:0451450523", "urn:isbn:0451450523"),
    ("urn:pageinfo:https://Example.org/Path?b=1&a=2", "urn:pageinfo:https://example.org/path?a=2&b=1"),
    ("mailto:Info@example.org", "mailto:info@example.org"),
    ("data:text/plain,Hello", "data:text/plain,hello"),
    ("file:///srv/Page.html", "file:/srv/page.html"),
    ("about:blank", "about:blank"),
    ("www.example.org/x", "org,example)/x"),
    ("//example.org/x", "org,example)/x"),
    ("http:////example.org/x", "org,example)/x"),
    ("http://exam_ple.org/", "org,exam_ple)/"),
    ("http://a b.org/c d", "org,a%20b)/c%20d"),
    ("http://a..b.org/", "org,b,a)/"),
    ("http://www.com/", "com)/"),
    (f"http://example.org/?a=1&jsessionid={HEX32}", "org,example)/?&a=1"),
    (f"http://example.org/?jsessionid={HEX32}&a=1", "org,example)/?a=1"),
    (f"http://example.org/?PHPSESSID={HEX32.upper()}", "org,example)/"),
    (f"http://example.org/?sid={HEX32}&sid={HEX32}", f"org,example)/?&sid={HEX32}"),
    ("http://example.org/?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&x", "org,example)/?x"),
    ("http://example.org/?z&CFID=1&CFTOKEN=2&b", "org,example)/?b&z"),
    (f"http://example.org/(S({HEX24}))/page.aspx", "org,example)/page.aspx"),
    (f"http://example.org/({HEX24})/dir/page.aspx?x", "org,example)/dir/page.aspx?x"),
    (f"http://example.org/({HEX24})/page.html", f"org,example)/({HEX24.lower()})/page.html"),
    ("http://example.org/?a&a=&a=1&a-b=1", "org,example)/?a&a=&a=1&a-b=1"),
    ("", "-"),
    (" \t\n", "-"),
]


@pytest.mark.parametrize(("address", "expected"), KEYS)
def test_key_of_known_addresses(address, expected):
    assert url.key(address) == expected


# Whitespace alone is nothing to us and `http://` to the reference.
@pytest.mark.parametrize("address", [address for address, _ in KEYS if address.strip() or not address])
def test_known_keys_are_those_of_the_reference(address):
    assert url.key(address) == surt(address)


DIFFERENCES = [
    (
        "ftp://example.org:21/a",
        "org,example)/a",
        "org,example:21)/a",
        "the default port of FTP is as silent as that of HTTP (WHATWG)",
    ),
    ("http://example.org:0/", "org,example:0)/", "org,example)/", "port 0 is a port"),
    (
        "http://example.org/../a",
        "org,example)/a",
        "org,example)/../a",
        "there is nothing above the root (WHATWG)",
    ),
    (
        "http://example.org/a%2fx/../b",
        "org,example)/b",
        "org,example)/a/b",
        "dots count segments before escapes are undone (WHATWG)",
    ),
    (
        "http://example.org\\a\\b",
        "org,example)/a/b",
        "org\\a\\b,example)/",
        "browsers send a backslash as a slash (WHATWG)",
    ),
    (
        "http://stra\u00dfe.example/",
        "example,xn--strae-oqa)/",
        "example,strasse)/",
        "IDNA 2008 keeps the sharp s (UTS 46)",
    ),
    (
        "http://[2001:DB8:0:0::1]/",
        "2001:db8::1)/",
        "2001:db8:0:0::1)/",
        "one spelling of an IPv6 address (WHATWG)",
    ),
    ("http://0x7f.1/", "1,0,0,127)/", "1,0x7f)/", "hexadecimal IPv4 is an address (WHATWG)"),
    ("http://https://example.org/", "https)/example.org", "org,example)/", "a browser asks the host `https`"),
]


@pytest.mark.parametrize(
    ("address", "ours", "theirs"), [row[:3] for row in DIFFERENCES], ids=[row[3] for row in DIFFERENCES]
)
def test_known_differences_to_the_reference(address, ours, theirs):
    assert (url.key(address), surt(address)) == (ours, theirs)


# --- generated addresses against the reference ---


@settings(max_examples=1500)
@given(addresses)
@example("http://AA?&CFTOKEN=0&&CFID=0")
def test_generated_keys_are_those_of_the_reference(address):
    assert url.key(address) == surt(address)


def test_a_large_made_set_agrees_with_the_reference():
    made = [
        f"{scheme}://{host}{port}/{folder}{name}{query}"
        for scheme in ("http", "https")
        for host in (
            "www.kb.nl",
            "bibliotheek.gent.be",
            "www1.dnb.de",
            "WWW.Example.CO.UK",
            "a-b.example.museum",
        )
        for port in ("", ":80", ":8443")
        for folder in (
            "",
            "nieuws/",
            "Nieuws/2007/05/",
            "~user/",
            "a%20b/",
            "//x//",
            "caf%C3%A9/",
            "(S(" + HEX24 + "))/",
        )
        for name in ("", "index.html", "Page.aspx", "%E4rger.htm", "x;y=1", "a+b")
        for query in (
            "",
            "?",
            "?id=12&lang=nl",
            "?b=1&B=0&a",
            f"?PHPSESSID={HEX32}&q=1",
            "?q=%C3%A9t%C3%A9",
            "?u=http%3A%2F%2Fa.org%2F%3Fx%3D1%26y",
        )
    ]
    assert len(made) > 10_000
    assert [address for address in made if url.key(address) != surt(address)] == []


# --- properties ---


@settings(max_examples=500)
@given(
    st.one_of(
        st.text(),
        st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
        st.binary().map(lambda raw: raw.decode("latin-1")),
    )
)
@example("\ud800")
@example("http://\udcff.org/\udcfe?\ud812#\udc01")
@example("http://[")
@example("http://:0")
@example("a:" + "//" * 50)
def test_a_key_of_anything_is_printable_ascii(text):
    found = url.key(text)
    assert found
    assert all("!" <= char <= "~" for char in found)
    assert url.key("http://" + text)


@settings(max_examples=500)
@given(
    st.one_of(
        addresses,
        st.text(printable + " \u00e9\u6f22", min_size=1, max_size=40).map(
            lambda text: "http://h.org/" + text
        ),
    )
)
def test_the_wire_form_is_stable_and_has_the_same_key(address):
    canonical = url.find_canonical(address)
    if canonical is not None:
        assert url.find_canonical(canonical) == canonical
        assert url.key(canonical) == url.key(address)


@settings(max_examples=500)
@given(addresses)
def test_the_short_way_and_the_long_way_to_a_key_agree(address):
    assert url._key_of_parts(url._split(address)) == url.key(address)


@settings(max_examples=200)
@given(st.lists(addresses, min_size=2, max_size=20))
def test_keys_of_one_host_stand_together_in_order(found):
    keys = sorted(map(url.key, found))
    assert keys == sorted(keys, key=lambda text: text.encode("ascii"))
    hosts_in_order = [text.partition(")")[0] for text in keys]
    changes = sum(before != after for before, after in itertools.pairwise(hosts_in_order))
    assert changes == len(set(hosts_in_order)) - 1


@given(st.text("%25aA4", max_size=60).map(lambda text: text.encode()))
def test_deep_escapes_end_where_repeated_unescaping_ends(data):
    from urllib.parse import unquote_to_bytes

    slow = data
    while (decoded := unquote_to_bytes(slow)) != slow:
        slow = decoded
    assert url._unescaped_deeply(data) == slow


HOSTILE = {
    "coldfusion": "http://h.org/?" + "cfid=" * 40_000,
    "coldfusion pairs": "http://h.org/?" + "cfid=&cftoken=&" * 15_000,
    "session ids": "http://h.org/?" + f"sid={HEX32}x" * 6_000,
    "session ids that match": "http://h.org/?" + f"sid={HEX32}&" * 6_000,
    "asp": "http://h.org/a.aspx?b".replace("?", "%3f") + f"/({HEX24})" * 8_000 + "/",
    "asp pages": "http://h.org" + f"/({HEX24})/.aspx%3f" * 6_000,
    "asp nested": "http://h.org/(" + f"a({HEX24})" * 8_000 + ".aspx",
    "escapes": "http://h.org/%" + "25" * 100_000 + "41",
    "escaped escapes": "http://h.org/" + "%25" * 70_000,
    "slashes": "http://h.org" + "/" * 200_000,
    "dots": "http://h.org" + "/%252e%252e" * 20_000,
    "labels": "http://" + "a." * 100_000 + "org/",
    "label": "http://" + "a" * 200_000,
    "labels without end": "http://" + "a." * 100_000 + "!",
    "ats": "http://" + "@" * 200_000,
    "colons": "x" + ":" * 200_000,
    "arguments": "http://h.org/?" + "&".join(map(str, range(40_000))),
}


@pytest.mark.parametrize("address", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.timeout(60)  # linear work takes milliseconds here, quadratic work minutes
def test_no_blow_up_on_hostile_addresses(address):
    assert len(url.key(address)) <= 3 * len(address)
