"""Ranges of keys: an address, its folder, its host, its domain."""

import pytest
from hypothesis import given, settings

from url_samples import addresses
from webdepot import url
from webdepot.errors import InputError
from webdepot.url import UrlMatch

SITE = [
    "http://example.org/",
    "http://www.example.org/news",
    "http://example.org/news/",
    "http://example.org/news/today?a=1",
    "http://example.org/newspaper",
    "http://example.org:8080/",
    "http://sub.example.org/",
    "http://deep.sub.example.org:8080/x",
    "http://example-shop.org/",
    "http://examplex.org/",
    "http://sub.example-shop.org/",
    "http://org.example/",
    "http://example.org.uk/",
    "urn:isbn:1",
]
RANGES = [
    ("example.org/news", None, {"/news", "/news/"}),
    ("example.org/news/*", None, {"/news/today?a=1"}),
    ("example.org/news*", None, {"/news", "/news/", "/news/today?a=1", "/newspaper"}),
    ("example.org/*", None, {"/", "/news", "/news/", "/news/today?a=1", "/newspaper"}),
    ("www.example.org", UrlMatch.PREFIX, {"/", "/news", "/news/", "/news/today?a=1", "/newspaper"}),
    ("https://example.org/news", UrlMatch.HOST, {"/", "/news", "/news/", "/news/today?a=1", "/newspaper"}),
    ("example.org:8080", UrlMatch.HOST, {":8080/"}),
    (
        "*.example.org",
        None,
        {"/", "/news", "/news/", "/news/today?a=1", "/newspaper", "sub/", "deep.sub:8080/x"},
    ),
    (
        "http://*.example.org/*",
        None,
        {"/", "/news", "/news/", "/news/today?a=1", "/newspaper", "sub/", "deep.sub:8080/x"},
    ),
    (
        "www.example.org/x",
        UrlMatch.DOMAIN,
        {"/", "/news", "/news/", "/news/today?a=1", "/newspaper", "sub/", "deep.sub:8080/x"},
    ),
    ("*.sub.example.org", None, {"sub/", "deep.sub:8080/x"}),
    ("urn:isbn:*", None, {"urn:isbn:1"}),
    ("urn:isbn:1", UrlMatch.EXACT, {"urn:isbn:1"}),
]


def short(address):
    """`http://www.sub.example.org/x` -> `sub/x`; others stay as they are."""
    rest = address.removeprefix("http://").removeprefix("www.")
    host, slash, path = rest.partition("/")
    host, colon, port = host.partition(":")
    if host != "example.org" and not host.endswith(".example.org"):
        return address
    return host.removesuffix("example.org").removesuffix(".") + colon + port + slash + path


@pytest.mark.parametrize(("typed", "match", "expected"), RANGES)
def test_key_range(typed, match, expected):
    start, stop = url.key_range(typed, match)
    assert {short(address) for address in SITE if start <= url.key(address) < stop} == expected


@settings(max_examples=300)
@given(addresses)
def test_every_range_holds_its_own_address(address):
    own = url.key(address)
    for match in UrlMatch:
        if match is UrlMatch.PREFIX and url.split_wildcard(address)[0].endswith(("/", "?")):
            continue
        start, stop = url.key_range(address, match)
        assert start <= own < stop


@pytest.mark.parametrize("typed", ["", " ", "*.example.org/path", "x" * (url.LONGEST_URL + 1)])
def test_key_range_refuses(typed):
    with pytest.raises(InputError):
        url.key_range(typed)


def test_what_names_no_host_has_no_range_of_hosts():
    with pytest.raises(InputError, match="has no host"):
        url.key_range("urn:isbn:1", UrlMatch.HOST)
