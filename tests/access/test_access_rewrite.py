"""Rewriting on the server: every kind of address, in whatever spelling; anything else untouched; no text
breaks it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.access.replay import server_rewrite

BASE = "http://www.example.org/dir/page.html"


def lead(absolute: str) -> str:
    return f"/all/2009ns_/{absolute}"


ROOT, HERE = "/all/2009ns_/http://www.example.org", "/all/2009ns_/http://www.example.org/dir"


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ('<a href="/x?a=1&amp;b=2#top">', f'<a href="{ROOT}/x?a=1&amp;b=2#top">'),
        ("<A HREF=next.html>", f'<a href="{HERE}/next.html">'),
        (
            "<img src='//other.org/a.png' alt='a &amp; b'>",
            '<img src="/all/2009ns_/http://other.org/a.png" alt="a &amp; b">',
        ),
        ('<img srcset="a.png 1x, /b,c.png 2x">', f'<img srcset="{HERE}/a.png 1x, {ROOT}/b%2Cc.png 2x">'),
        (
            '<video poster="p.jpg"><source src=v.mp4></video>',
            f'<video poster="{HERE}/p.jpg"><source src="{HERE}/v.mp4"></video>',
        ),
        ('<body background="bg.gif">', f'<body background="{HERE}/bg.gif">'),
        ('<p style="background: url(bg.gif)">', f'<p style="background: url(&#x27;{HERE}/bg.gif&#x27;)">'),
        (
            '<style>@import "a.css"; b { c: url( "d.png" ) }</style>',
            f'<style>@import "{HERE}/a.css"; b {{ c: url( "{HERE}/d.png" ) }}</style>',
        ),
        (
            '<meta http-equiv="Refresh" content="5; URL=\'/x\'">',
            f'<meta http-equiv="Refresh" content="5; URL={ROOT}/x">',
        ),
        (
            '<form action="/find"><button formaction="go">',
            f'<form action="{ROOT}/find"><button formaction="{HERE}/go">',
        ),
        ('<object data="film.swf">', f'<object data="{HERE}/film.swf">'),
        ('<svg><use xlink:href="s.svg#i"/></svg>', f'<svg><use xlink:href="{HERE}/s.svg#i" /></svg>'),
        ('<a target="_TOP" href="#x">', '<a target="_self" href="#x">'),
        (
            '<script src="a.js" integrity="sha256-x" crossorigin></script>',
            f'<script src="{HERE}/a.js"></script>',
        ),
        ('<base href="http://cdn.example.org/v/"><img src="i.png">', None),
        ('<meta http-equiv="Content-Security-Policy" content="img-src x">', None),
        (
            '<iframe srcdoc="&lt;img src=a.png&gt;"></iframe>',
            f'<iframe srcdoc="&lt;img src=&quot;{HERE}/a.png&quot;&gt;"></iframe>',
        ),
    ],
)
def test_addresses_are_led_into_the_archive(given_, wanted):
    made = server_rewrite.html(given_, BASE, lead)
    if wanted is not None:
        assert made == wanted
    elif "base" in given_:
        assert 'src="/all/2009ns_/http://cdn.example.org/v/i.png"' in made
    else:
        assert 'http-equiv="x-archive-orig-content-security-policy"' in made


@pytest.mark.parametrize(
    "text",
    [
        "<!doctype html><p>1 &lt; 2 &eacute; <b class=x>bold</b><!-- <a href='x'> --><br/>",
        "<script>if (a < b && c) { document.write('<a href=\"/x\">') }</script>",
        '<a href="#part">', '<a href="mailto:a@example.org">', '<a href="javascript:go()">', '<img src="data:image/png;base64,AA">',
        "<textarea><a href='/x'></textarea>", "a < b", '<p data="x" title="/y">',
    ],
)  # fmt: skip
def test_everything_else_stays_as_it_is(text):
    assert server_rewrite.html(text, BASE, lead) == text


def test_style_sheets():
    sheet = "/* url(no.png) */ @import url(a.css); @import 'b.css'; a { b: url('c.png'), URL(d.png) } e::after { content: 'url(f)' }"
    made = server_rewrite.css(sheet, BASE, lead)
    assert "/* url(no.png) */" in made
    assert made.count(HERE) == 5 and f"url('{HERE}/a.css')" in made and f"@import '{HERE}/b.css'" in made
    assert server_rewrite.css("a { b: url() } c { d: e }", BASE, lead) == "a { b: url() } c { d: e }"


@pytest.mark.parametrize(
    ("data", "content_type", "word"),
    [
        ("Käse".encode("cp1252"), "text/html; charset=iso-8859-1", "Käse"),
        (b"<meta charset=windows-1251>" + "Привет".encode("cp1251"), "text/html", "Привет"),
        ("\ufeffKäse".encode(), "text/html; charset=latin1", "Käse"),
        ("日本語の文章です。".encode("shift-jis") * 20, "text/html; charset=x-sjis", "日本語"),
    ],
)
def test_pages_are_decoded_as_browsers_do(data, content_type, word):
    assert word in server_rewrite.text_of(data, content_type)


@given(st.text(alphabet=st.sampled_from(" <>=\"'/abhrefsrcset,url()@import;&#x\\\n!-1"), max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_rewritten(text):
    server_rewrite.html(text, BASE, lead)
    server_rewrite.css(text, BASE, lead)
    server_rewrite.srcset(text, BASE, lead)


@pytest.mark.parametrize(
    "text",
    [
        "<a href=",
        "<style>url(" * 20_000,
        "<div>" * 100_000,
        "url(" * 100_000,
        "@import " * 50_000,
        ", ," * 50_000,
    ],
)
def test_hostile_texts_take_no_time(text):
    server_rewrite.html(text, BASE, lead)
    server_rewrite.css(text, BASE, lead)
    server_rewrite.srcset(text[:20_000], BASE, lead)
