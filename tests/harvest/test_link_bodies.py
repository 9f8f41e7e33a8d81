"""Bodies that are searched for links: what is not a link, codings, encodings, limits and hostile input."""

import gzip
import json
import zlib
from io import BytesIO

import brotli
import pytest
from harvest_links import PAGE, E, L, R, X, found, head, of
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.harvest.links import bodies
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.harvest.links.html import srcset
from webdepot.harvest.links.resolve import resolve, resolved_in
from webdepot.url import Url, find_canonical

NOTHING = [
    '<a href="#top">',
    '<a href="">',
    '<a href="mailto:x@a.example">',
    '<a href="tel:+31">',
    '<a href="javascript:void(0)">',
    '<a href="data:text/html,x">',
    '<form action="/send"><button formaction="/other"></form>',
    '<form method=get action="/search"></form>',
    "<!-- <a href=/no> -->",
    "<script>var a = '<a href=/no>';</script>",
    "<textarea><a href=/no></textarea>",
    "<link rel=dns-prefetch href=//cdn.example>",
    "<link rel=preconnect href=//cdn.example>",
    '<a href="http://[bad">',
    '<a href="http://exa mple/">',
    '<meta name="description" content="/not/a/link">',
    '<img data-src="two words here">',
    "<a href='http://a.example:99999/'>",
]


@pytest.mark.parametrize("markup", NOTHING)
def test_what_is_not_a_link(markup: str) -> None:
    assert found(markup) == {}


def test_a_whole_address_means_the_same_everywhere_but_half_a_one_does_not() -> None:
    for folder in ("one", "two"):
        page = Url(f"http://a.example/{folder}/page.html")
        assert found("<a href='http://b.example/é?x=1#y'><a href='http:x.html'><a href=http>", url=page) == {
            "http://b.example/%C3%A9?x=1": L,
            f"http://a.example/{folder}/x.html": L,
            f"http://a.example/{folder}/http": L,
        }


def test_an_address_found_twice_keeps_its_best_hop() -> None:
    assert found("<a href=/x.png><img src=/x.png>") == {of("x.png"): E}


def test_templates_of_addresses_in_scripts_are_not_guessed() -> None:
    page = """<script>load("/tiles/%d.png", "%%URL%%/mjx-zero.woff2", "/img/%s/a.jpg", "/img/100%25.png")</script>"""
    assert list(found(page, limits=LinkLimits(guess=True))) == [of("img/100%25.png")]


def test_guessing_from_scripts_is_asked_for() -> None:
    page = (
        "<script>var next = '/x.html', cdn = \"https://b.example/y\", t = 'text/html', v = '1.2.3';</script>"
    )
    assert found(page) == {}
    assert found(page, limits=LinkLimits(guess=True)) == {of("x.html"): X, "https://b.example/y": X}
    assert found("load('/x.js')", head("text/javascript"), limits=LinkLimits(guess=True)) == {of("x.js"): X}


def test_an_error_page_gives_its_parts_but_no_links() -> None:
    assert found("<a href=/x><img src=/x.png>", head(status=404)) == {of("x.png"): E}


def test_a_redirects_body_is_not_read() -> None:
    assert found("<a href=/other>", head(status=301, Location="/x")) == {of("x"): R}


CODED = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}


@pytest.mark.parametrize("coding", CODED)
def test_content_coding_is_undone(coding: str) -> None:
    assert found(CODED[coding](b"<a href=/x>"), head(Content_Encoding=coding)) == {of("x"): L}


def test_chunks_are_undone() -> None:
    assert found(b"5\r\n<a hr\r\n6\r\nef=/x>\r\n0\r\n\r\n", head(Transfer_Encoding="chunked")) == {of("x"): L}


def test_a_bomb_costs_no_more_than_the_limit() -> None:
    bomb = gzip.compress(b"<a href=/x>" + b" " * (64 << 20))
    result = extract(PAGE, head(Content_Encoding="gzip"), BytesIO(bomb), LinkLimits(page_bytes=1 << 20))
    assert result.links == [(of("x"), L)]
    assert result.note == f"linksCutAtByte:{1 << 20}"


def test_a_page_of_too_many_links_is_cut_and_says_so() -> None:
    text = "".join(f"<a href=/{n}>" for n in range(1000))
    result = extract(PAGE, head(), BytesIO(text.encode()), LinkLimits(links=100))
    assert len(result.links) == 100
    assert result.note == "linksCutAt:100"


@pytest.mark.parametrize(
    ("mime", "body"),
    [("application/json", b"{nope"), ("application/pdf", b"%PDF-1.4 nope"), ("text/xml", b"")],
)
def test_what_cannot_be_read_is_noted(mime: str, body: bytes) -> None:
    result = extract(PAGE, head(mime), BytesIO(body), LinkLimits())
    assert result.links == []
    assert result.note.startswith("linksFailed:") or mime == "text/xml"


@pytest.mark.parametrize(
    ("data", "note"),
    [
        ("{{ template }}", "JSONDecodeError"),
        ("[" * 100_000, "RecursionError"),
        ('{"url": "/y",}', "JSONDecodeError"),
        ("9" * 5000, "ValueError"),
    ],
)
def test_data_in_a_page_that_cannot_be_read_costs_nothing_else(data: str, note: str) -> None:
    text = (
        f'<a href=/x><script type="application/ld+json">{data}</script>'
        '<script type="application/ld+json">{"url": "/z"}</script>'
    )
    result = extract(PAGE, head(), BytesIO(text.encode()), LinkLimits())
    assert result.links == [(of("x"), L), (of("z"), L)]
    assert result.note == f"linksPartFailed:{note}"


ENCODINGS = {
    "header": ("text/html; charset=iso-8859-1", "<a href='/?q=ü'>".encode("latin-1"), "?q=%FC"),
    "header, path is UTF-8 always": (
        "text/html; charset=iso-8859-1",
        "<a href='/ü'>".encode("latin-1"),
        "%C3%BC",
    ),
    "meta charset": ("text/html", "<meta charset=windows-1251><a href='/ж'>".encode("cp1251"), "%D0%B6"),
    "meta http-equiv": (
        "text/html",
        "<meta http-equiv=content-type content='text/html; charset=shift_jis'><a href='/あ'>".encode(
            "shift_jis"
        ),
        "%E3%81%82",
    ),
    "byte-order mark beats header": (
        "text/html; charset=iso-8859-1",
        "\ufeff<a href='/ü'>".encode(),
        "%C3%BC",
    ),
    "UTF-16": ("text/html", "\ufeff<a href='/ü'>".encode("utf-16-le"), "%C3%BC"),
    "nothing said, UTF-8": ("text/html", "<a href='/ü'>".encode(), "%C3%BC"),
    "nothing said, not UTF-8": ("text/html", b"<a href='/\x80'>", "%E2%82%AC"),
    "unknown label": ("text/html; charset=klingon", "<a href='/ü'>".encode(), "%C3%BC"),
    "a codec that is no character set": ("text/html; charset=rot13", "<a href='/ü'>".encode(), "%C3%BC"),
}


@pytest.mark.parametrize("case", ENCODINGS)
def test_encodings(case: str) -> None:
    mime, body, path = ENCODINGS[case]
    assert found(body, head(mime)) == {of(path): L}


def test_types_that_say_nothing_are_recognised_by_their_bytes() -> None:
    for mime in ("", "application/octet-stream"):
        assert found("<!DOCTYPE html><a href=/x>", head(mime)) == {of("x"): L}
        assert found("\x00\x01<a href=/x>", head(mime)) == {}


HOSTILE = {
    "nested": "<div>" * 100_000 + "<a href=/x>",
    "attributes": "<a " + " ".join(f"data-a{n}=1" for n in range(50_000)) + " href=/x>",
    "open quotes": "<a href='/x'>" + '<a href="' * 20_000,
    "comments": "<a href='/x'>" + "<!--" * 50_000,
    "conditional comments": "<a href='/x'>" + "<!--[if IE]>" * 20_000,
    "srcset commas": "<a href='/x'><img srcset='" + "," * 100_000 + "'>",
    "style brackets": "<a href='/x'><style>" + "url(" * 50_000 + "</style>",
    "json depth": "<a href='/x'><script type='application/ld+json'>" + "[" * 100_000 + "</script>",
    "handlers": "<a href='/x'>" + "<b onclick=\"'" + "a" * 200_000 + '">',
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.timeout(20)
def test_hostile_pages_end_soon(case: str) -> None:
    result = extract(PAGE, head(), BytesIO(HOSTILE[case].encode()), LinkLimits(guess=True))
    assert (of("x"), L) in result.links and "linksFailed" not in result.note


@pytest.mark.timeout(20)
def test_hostile_style_sheets_end_soon() -> None:
    for text in (
        "/*" * 100_000,
        "url('" * 50_000,
        "image-set(" * 30_000,
        "@import" * 50_000,
        'url("' + "\\" * 200_001,
        "image-set('" * 30_000,
    ):
        found(text, head("text/css"))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(sorted(bodies.READERS)))
def test_no_bytes_make_it_raise(body: bytes, mime: str) -> None:
    extract(PAGE, head(mime), BytesIO(body), LinkLimits(guess=True))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z0-9/._-]{1,20}", fullmatch=True),
            st.sampled_from(["", " 1x", " 100w", " 2.5x"]),
        ),
        max_size=8,
    )
)
def test_srcset_gives_back_what_went_in(entries: list[tuple[str, str]]) -> None:
    assert srcset(", ".join(url + size for url, size in entries)) == [url for url, _ in entries]


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    )
)
def test_json_addresses_are_found_at_any_depth(value: object) -> None:
    body = json.dumps([value, {"deep": [value, "http://a.example/x"]}])
    assert found(body, head("application/json")).get(of("x")) is X


@settings(max_examples=300, deadline=None)
@given(
    st.from_regex(r"[ \t]?(https?:|//)?[A-Za-z0-9/?#.:;&=%_ -]{0,25}", fullmatch=True),
    st.sampled_from([of("a/b"), of("a/c?q/x"), of(""), "https://b.example/a/b"]),
)
def test_cached_addresses_are_those_of_the_page(raw: str, page: str) -> None:
    expected = find_canonical(raw, page) if raw and raw[0] != "#" else None
    known = resolved_in(page)
    assert known.get(raw, expected) == expected  # by another page of the folder
    assert resolve(raw, page, "utf-8", known) == expected
    assert known.get(raw, expected) == expected
