"""The wire form of addresses, and addresses as people type them."""

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot import url
from webdepot.errors import InputError


@pytest.mark.parametrize(
    ("raw", "base", "expected"),
    [
        ("HTTP://Example.ORG:80/a/../b#c", None, "http://example.org/b"),
        ("../x?y", "https://example.org/a/b/c", "https://example.org/a/x?y"),
        ("//other.org", "https://example.org/", "https://other.org/"),
        ("javascript:alert(1)", "https://example.org/", None),
        ("mailto:a@b.org", None, None),
        ("http://a b/", None, None),
        ("not a known scheme", None, None),
        ("http://example.org/" + "a" * url.LONGEST_URL, None, None),
        ("ftp://example.org/x", None, "ftp://example.org/x"),
        ("\ud800", "https://example.org/", None),
    ],
)
def test_find_canonical(raw, base, expected):
    assert url.find_canonical(raw, base) == expected


def test_canonicalise_says_what_is_wrong():
    with pytest.raises(InputError, match="'mailto:x' is not a web address"):
        url.canonicalise("mailto:x")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("example.org", "http://example.org/"),
        ("  www.example.org/a b ", "http://www.example.org/a%20b"),
        ("localhost:8080", "http://localhost:8080/"),
        ("example.org:8080?x", "http://example.org:8080/?x"),
        ("https://example.org", "https://example.org/"),
        ("//example.org/x", "http://example.org/x"),
    ],
)
def test_from_typed(typed, expected):
    assert url.from_typed(typed) == expected


@pytest.mark.parametrize("typed", ["", "   ", "mailto:a@b.org", "http://"])
def test_from_typed_refuses(typed):
    with pytest.raises(InputError):
        url.from_typed(typed)


@pytest.mark.parametrize(
    ("address", "host", "domain"),
    [
        ("https://www.lib.ox.ac.uk/x", "www.lib.ox.ac.uk", "ox.ac.uk"),
        ("http://user@example.org:8080?x", "example.org:8080", "example.org"),
        ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080", "[2001:db8::1]"),
        ("http://192.168.1.1:81/", "192.168.1.1:81", "192.168.1.1"),
        ("http://localhost/", "localhost", "localhost"),
        ("http://a.b.xn--bcher-kva.de./", "a.b.xn--bcher-kva.de.", "xn--bcher-kva.de"),
        ("urn:isbn:1", "", ""),
    ],
)
def test_host_and_domain(address, host, domain):
    assert (url.host_of(address), url.domain_of(address)) == (host, domain)


_HOSTS = [
    "a.example",
    "127.0.0.1",
    "127.0.0.01",
    "1.2.3.256",
    "x.0x10",
    "xn--bcher-kva.de",
    "a..b",
    "-a.de",
    "a-.de",
    "A.de",
    "host",
    "10.1",
]
_HOSTS += ["e_x.org", "foo.com.", "a.xn--p1ai", "a.9"]
_PORTS = ["", ":80", ":443", ":8080", ":0", ":080", ":65535", ":99999", ":44"]
_PATHS = [
    "/",
    "/a",
    "/b.html",
    "/../b",
    "/./x",
    "//x",
    "/a b",
    "/a'b",
    "/a|b",
    "/%41",
    "/é",
    "/a:b@c",
    "/;y=1,2",
    "/.w",
    "/..",
    "?q",
    "#f",
]
_PATHS += ["/{a}", "\\x"]


@given(
    st.sampled_from(["http://", "https://", "ftp://", "HTTP://", "//"]),
    st.sampled_from(_HOSTS),
    st.sampled_from(_PORTS),
    st.lists(st.sampled_from(_PATHS), min_size=1, max_size=3).map("".join),
    st.booleans(),
)
def test_the_short_way_to_the_wire_form_comes_to_the_same(
    scheme: str, host: str, port: str, path: str, is_whole: bool
):
    try:
        base = ada_url.normalize_url(f"http://{host}{port}/dir/page.html?x")
    except ValueError:
        base = "https://a.example:8443/dir/"
    raw = f"{scheme}{host}{port}{path}" if is_whole else path
    try:
        wanted = ada_url.join_url(base, raw).partition("#")[0]
    except ValueError:
        wanted = None
    assert url.find_canonical(raw, base) == wanted
