"""What the replay worker gets instead of the archived bytes: pages that it would damage, and XML that browsers
do not show.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webdepot.access.replay import xml_view
from webdepot.access.replay.worker_page import prepared
from webdepot.access.replay.xml_view import Feed, XmlLineKind, XmlTree

PAGE = "http://a.example/dir/page.html"


@given(
    st.binary(max_size=400),
    st.sampled_from(
        ["text/html", "text/html; charset=utf-8", "text/html; charset=windows-1251", "x; charset=hz"]
    ),
)
@example(b"\xfe\xff\x00", "text/html")
@example(b"<a href='\x83", "text/html; charset=shift_jis")
@example(b'<script type=importmap>{"imports": [[{}]]}</script>', "text/html")
def test_any_bytes_can_be_prepared(page: bytes, content_type: str):
    made, made_type = prepared(page, content_type, PAGE)
    assert isinstance(made, bytes) and made_type.isascii()


@pytest.mark.parametrize(
    "page",
    [
        "<a href='Größe.html' title='&euro; &auml;'>ü</a>".encode(),
        b"<a href=a target=main>_parent</a> <p>target=_parent</p> <x-a target='_parent'>",
        b"<script>var a = \"target='_parent'\"; if (a<b && c>d) e = '_parent';</script>",
        b'<script type="importmap">{ "imports": { "a": "/a.js", "b/": "http://b.example/" } ',
        b"<script type=importmap>nonsense</script>",
    ],
)
def test_what_the_worker_reads_well_is_left_alone(page: bytes):
    assert prepared(page, "text/html", PAGE) == (page, "text/html")


def test_only_addresses_and_references_of_a_page_in_another_encoding_change():
    page = "<title>Größe</title><a class=größe href='/Größe.html?ö#ü' title=\"&auml; 'ö' &rarr;\">Größe &euro;</a>"
    made, _ = prepared(page.encode("cp1252"), "text/html; charset=iso-8859-1", PAGE)
    assert made.decode("cp1252") == page.replace("'/Größe.html?ö#ü'", '"/Gr%C3%B6%C3%9Fe.html?%F6#%C3%BC"')
    made, _ = prepared(b"<meta charset=koi8-r><p title='&laquo;&euro; &#1046;&copy;'>", "text/html", PAGE)
    assert made == b"<meta charset=koi8-r><p title='&laquo;&euro; &#1046;&copy;'>", "not in that encoding"
    made, _ = prepared(b"<meta charset=koi8-r><p title='&#1046;&copy;'>", "text/html", PAGE)
    assert made.decode("koi8-r") == '<meta charset=koi8-r><p title="Ж©">'


def test_the_parent_of_a_frame_is_told_from_the_whole_window():
    page = b'<base target=_PARENT><a class="x"target="_parent" href=a><area href=a target = \'_parent\'>'
    made, _ = prepared(page, "text/html", PAGE)
    assert made == page.replace(b"_PARENT", b"_Parent").replace(b"_parent", b"_Parent")


def test_import_maps_have_whole_addresses():
    page = b"""<base href="/lib/"><script type=importmap>{"imports": {"a/": "./a/", "b": "/b.js", "./c": "../c"},
      "scopes": {"./d/": {"e": "./e.js"}}}</script>"""
    made, _ = prepared(page, "text/html", PAGE)
    base = b"http://a.example/lib/"
    assert (
        made == b'<base href="/lib/"><script type=importmap>{"imports": {"a/": "%sa/", "b": "/b.js", '
        b'"%sc": "http://a.example/c"}, "scopes": {"%sd/": {"e": "%se.js"}}}</script>'
        % (base, base, base, base)
    )


@given(st.binary(max_size=300))
@example(b"<rss><channel><item><link/></item></channel></rss>")
@example(b"<a><b:c d:e='f'/>&g;<!-- h --></a>")
def test_any_bytes_are_viewed_or_left_to_the_browser(data: bytes):
    assert isinstance(xml_view.view_of(data, PAGE), Feed | XmlTree | None)


def test_entities_are_not_expanded():
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 20))
    bomb = f'<!DOCTYPE x [<!ENTITY e0 "boom">{levels}<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&e19;&f;<y/></x>'
    view = xml_view.view_of(bomb.encode(), PAGE)
    assert isinstance(view, XmlTree) and "boom" not in str(view) and "root:" not in str(view)


def test_rss_of_all_versions_and_broken_ones_are_feeds():
    rdf = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
      <channel><title>Old</title></channel><item><title>One</title><link>one.html</link><dc:date>2003</dc:date></item>
      </rdf:RDF>"""
    view = xml_view.view_of(rdf, PAGE)
    assert isinstance(view, Feed) and view.title == "Old"
    (entry,) = view.entries
    assert (entry.title, entry.url, entry.date) == ("One", "http://a.example/dir/one.html", "2003")
    broken = xml_view.view_of(b"<rss><channel><title>A & B</title><item><title>x", PAGE)
    assert isinstance(broken, Feed) and broken.title.startswith("A") and broken.entries[0].title == "x"


def test_a_feed_with_a_style_sheet_is_a_feed():
    styled = b'<?xml-stylesheet type="text/css" href="http://a.example/css.php?s=feed"?><rss><channel><title>News</title></channel></rss>'
    view = xml_view.view_of(styled, PAGE)
    assert isinstance(view, Feed) and view.title == "News"


def test_links_of_a_feed_lead_to_web_pages_only():
    view = xml_view.view_of(b"<rss><channel><link>javascript:alert(1)</link></channel></rss>", PAGE)
    assert isinstance(view, Feed) and view.url == ""


@pytest.mark.parametrize(
    "data",
    [
        b'<html xmlns="http://www.w3.org/1999/xhtml"/>',
        b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        b'<?xml-stylesheet type="text/css" href="a.css"?><poem/>',
        b"no markup",
        b"",
    ],
)
def test_what_browsers_show_themselves_is_left_to_them(data: bytes):
    assert xml_view.view_of(data, PAGE) is None


def test_a_long_document_is_cut():
    view = xml_view.view_of(b"<a>" + b"<b>1</b>" * (xml_view.MOST_LINES + 5) + b"</a>", PAGE)
    assert isinstance(view, XmlTree) and view.is_cut and len(view.lines) == xml_view.MOST_LINES
    assert view.lines[0].kind is XmlLineKind.OPEN and view.lines[1].text == "1"


@pytest.mark.parametrize(
    ("mime", "is_viewed"),
    [
        ("text/xml", True),
        ("application/rss+xml", True),
        ("image/svg+xml", False),
        ("application/xhtml+xml", False),
    ],
)
def test_which_types_are_viewed(mime: str, is_viewed: bool):
    assert xml_view.is_xml(mime) is is_viewed
