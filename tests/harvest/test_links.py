"""Every way to write a static link, and texts that only look like one."""

import gzip
import json
import zlib
from io import BytesIO

import brotli
import pikepdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.container.http import HttpHead, parse_head
from webdepot.harvest.links import bodies
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.harvest.links.html import srcset
from webdepot.harvest.links.resolve import resolve, resolved_in
from webdepot.model import Hop
from webdepot.url import Url, find_canonical

PAGE = Url("http://a.example/dir/page.html")
L, E, R, X, M = Hop.LINK, Hop.EMBED, Hop.REDIRECT, Hop.SPECULATIVE, Hop.MANIFEST


def head(mime: str = "text/html; charset=utf-8", status: int = 200, **headers: str) -> HttpHead:
    lines = [f"HTTP/1.1 {status} x", *([f"Content-Type: {mime}"] if mime else [])]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return parse_head("\r\n".join([*lines, "", ""]).encode("utf-8"))


def found(
    body: str | bytes, given_head: HttpHead | None = None, url: Url = PAGE, limits: LinkLimits | None = None
) -> dict[str, Hop]:
    data = body.encode() if isinstance(body, str) else body
    return dict(extract(url, given_head or head(), BytesIO(data), limits or LinkLimits()).links)


def of(path: str) -> str:
    return f"http://a.example/{path}"


HTML = {
    "a href": ('<a href="x.html">', "dir/x.html", L),
    "a href unquoted": ("<a href=x.html>", "dir/x.html", L),
    "a href upper case": ("<A HREF='/X'>", "X", L),
    "a href with entity": ('<a href="/?a=1&amp;b=2">', "?a=1&b=2", L),
    "a href with line break inside": ('<a href="/on\ne">', "one", L),
    "a href with blanks around": ('<a href="  /x  ">', "x", L),
    "a href with fragment": ('<a href="/x#part">', "x", L),
    "a href with backslash": (r'<a href="\x\y">', "x/y", L),
    "a href protocol-relative": ('<a href="//a.example/p">', "p", L),
    "a href with dots": ('<a href="../../up/./x">', "up/x", L),
    "a href query only": ('<a href="?page=2">', "dir/page.html?page=2", L),
    "a href in template": ("<template><a href=/x></template>", "x", L),
    "a href after broken markup": ("<p><b></p></div><table><a href=/x", None, L),
    "area href": ("<map><area href=/x></map>", "x", L),
    "link next": ("<link rel=next href=/x>", "x", L),
    "link canonical": ("<link rel=canonical href=/x>", "x", L),
    "link alternate feed": ("<link rel=alternate type=application/rss+xml href=/feed>", "feed", L),
    "link stylesheet": ("<link rel=stylesheet href=/x.css>", "x.css", E),
    "link alternate stylesheet": ("<link rel='alternate stylesheet' href=/x.css>", "x.css", E),
    "link icon": ("<link rel='shortcut icon' href=/f.ico>", "f.ico", E),
    "link apple-touch-icon": ("<link rel=apple-touch-icon href=/x.png>", "x.png", E),
    "link preload": ("<link rel=preload as=font href=/x.woff2>", "x.woff2", E),
    "link modulepreload": ("<link rel=modulepreload href=/x.mjs>", "x.mjs", E),
    "link manifest": ("<link rel=manifest href=/x.webmanifest>", "x.webmanifest", E),
    "link imagesrcset": ("<link rel=preload as=image imagesrcset='/x.png 1x, /y.png 2x'>", "y.png", E),
    "img src": ("<img src=/x.png>", "x.png", E),
    "img srcset": ("<img srcset='/a.png 1x, /x.png 2x'>", "x.png", E),
    "img srcset without descriptors": ("<img srcset='/a.png, /x.png'>", "x.png", E),
    "img lowsrc": ("<img lowsrc=/x.png>", "x.png", E),
    "img longdesc": ("<img longdesc=/x.html>", "x.html", L),
    "img data-src": ("<img data-src=/x.png>", "x.png", E),
    "img data-original": ("<img data-original=/x.png>", "x.png", E),
    "img data-lazy-src": ("<img data-lazy-src=/x.png>", "x.png", E),
    "img data-srcset": ("<img data-srcset='/a.png 1x, /x.png 2x'>", "x.png", E),
    "div data-bg": ("<div data-bg=/x.png></div>", "x.png", E),
    "div data-background-image with url()": (
        "<div data-background-image=\"url('/x.png')\"></div>",
        "x.png",
        E,
    ),
    "div data-href": ("<tr data-href=/x.html></tr><div data-href=/x.html>", "x.html", L),
    "img in noscript": ("<noscript><img src=/x.png></noscript>", "x.png", E),
    "picture source": ("<picture><source srcset='/x.webp 1x'></picture>", "x.webp", E),
    "video src": ("<video src=/x.mp4></video>", "x.mp4", E),
    "video poster": ("<video poster=/x.jpg></video>", "x.jpg", E),
    "video source": ("<video><source src=/x.webm></video>", "x.webm", E),
    "video track": ("<video><track src=/x.vtt></video>", "x.vtt", E),
    "audio src": ("<audio src=/x.mp3></audio>", "x.mp3", E),
    "script src": ("<script src=/x.js></script>", "x.js", E),
    "iframe src": ("<iframe src=/x.html></iframe>", "x.html", E),
    "iframe srcdoc": ('<iframe srcdoc="&lt;img src=/x.png&gt;"></iframe>', "x.png", E),
    "frame src": ("<html><frameset><frame src=/x.html></frameset></html>", "x.html", E),
    "embed src": ("<embed src=/x.swf>", "x.swf", E),
    "object data": ("<object data=/x.swf></object>", "x.swf", E),
    "object data with codebase": ("<object codebase=/old data=x.swf></object>", "old/x.swf", E),
    "object param": ("<object><param name=movie value=/x.swf></object>", "x.swf", E),
    "applet code with codebase": ("<applet codebase=/java code=X.class></applet>", "java/X.class", E),
    "applet archive": ("<applet code=X archive='a.jar,b.jar'></applet>", "dir/b.jar", E),
    "input image": ("<input type=image src=/x.gif>", "x.gif", E),
    "body background": ("<body background=/x.gif>", "x.gif", E),
    "table background": ("<table><tr><td background=/x.gif></table>", "x.gif", E),
    "html manifest": ("<html manifest=/x.appcache>", "x.appcache", E),
    "svg use": ("<svg><use xlink:href='/x.svg#id'/></svg>", "x.svg", E),
    "svg image": ("<svg><image href='/x.png'/></svg>", "x.png", E),
    "svg a": ("<svg><a xlink:href='/x.html'></a></svg>", "x.html", L),
    "blockquote cite": ("<blockquote cite=/x.html></blockquote>", "x.html", L),
    "meta refresh": ('<meta http-equiv="Refresh" content="5; URL=/x.html">', "x.html", R),
    "meta refresh quoted": ("<meta http-equiv=refresh content=\"0;url='/x.html'\">", "x.html", R),
    "meta refresh without url=": ('<meta http-equiv="refresh" content="0; /x.html">', "x.html", R),
    "Open Graph image": ('<meta property="og:image" content="/x.png">', "x.png", E),
    "Open Graph url": ('<meta property="og:url" content="http://a.example/x">', "x", L),
    "Twitter image": ('<meta name="twitter:image" content="/x.png">', "x.png", E),
    "microdata image": ('<meta itemprop="image" content="/x.png">', "x.png", E),
    "tile image": ('<meta name="msapplication-TileImage" content="/x.png">', "x.png", E),
    "JSON-LD image": ('<script type="application/ld+json">{"image": {"url": "/x.png"}}</script>', "x.png", E),
    "JSON-LD url": ('<script type="application/ld+json">[{"url": "http://a.example/x"}]</script>', "x", L),
    "inline style": ("<div style=\"background: url('/x.png')\"></div>", "x.png", E),
    "style element": ("<style>a { background: url(/x.png) }</style>", "x.png", E),
    "inline style, escaped": (r"<div style='background: url(/x\?y\(1\).png)'></div>", "x?y(1).png", E),
    "inline image set": ("<div style='background: image-set(\"/x.png\" 1x)'></div>", "x.png", E),
    "style element, escaped": (r"<style>a { background: url(/x\3f y) }</style>", "x?y", E),
    "style import": ('<style>@import "/x.css";</style>', "x.css", E),
    "onclick": ("<button onclick=\"location.href='/x.html'\">", "x.html", X),
    "javascript: href": ("<a href=\"javascript:open('/x.html')\">", "x.html", X),
    "conditional comment": ("<!--[if IE]><script src=/x.js></script><![endif]-->", "x.js", E),
    "base": ("<base href=/other/><a href=x>", "other/x", L),
    "base relative": ("<base href='sub/'><img src=x.png>", "dir/sub/x.png", E),
    "base after the link": ("<a href=x><base href=/late/>", "late/x", L),
}


@pytest.mark.parametrize("form", HTML)
def test_html(form: str) -> None:
    markup, path, hop = HTML[form]
    if path is None:  # cut off inside a tag: browsers see no link either
        assert found(markup) == {}
    else:
        assert found(markup).get(of(path)) is hop


CSS = {
    "url bare": ("a{b:url(/x.png)}", "x.png"),
    "url double quotes": ('a{b:url("/x.png")}', "x.png"),
    "url single quotes": ("a{b:url( '/x.png' )}", "x.png"),
    "url upper case": ("a{b:URL(/x.png)}", "x.png"),
    "url with escape": (r"a{b:url(/x\.png)}", "x.png"),
    "url with code point": (r"a{b:url(/\78 .png)}", "x.png"),
    "url with brackets in quotes": ("a{b:url('/x(1).png')}", "x(1).png"),
    "import string": ("@import '/x.css';", "x.css"),
    "import url": ("@import url(/x.css) screen;", "x.css"),
    "import without blank": ('@import"/x.css";', "x.css"),
    "font face": ("@font-face{src:url(/a.eot);src:url(/a.eot?#iefix) format('x'),url(/x.woff2)}", "x.woff2"),
    "image-set string": ("a{b:image-set('/a.png' 1x, '/x.png' 2x)}", "x.png"),
    "image-set url": ("a{b:-webkit-image-set(url(/a.png) 1x, url(/x.png) 2x)}", "x.png"),
    "relative": ("a{b:url(img/x.png)}", "dir/img/x.png"),
    "after a comment": ("/* url(/no.png) */ a{b:url(/x.png)}", "x.png"),
    "after a broken string": ('a{content:"\n}\nb{c:url(/x.png)}', "x.png"),
}


@pytest.mark.parametrize("form", CSS)
def test_css(form: str) -> None:
    text, path = CSS[form]
    assert found(text, head("text/css")).get(of(path)) is E


def test_names_in_css_are_not_links() -> None:
    text = (
        "@namespace svg url(/no-ns); /* @import '/no.css'; */ "
        "a{b:url(data:image/png;base64,AA==);content:'url(/no.png)'} c{d:url(#id)}"
    )
    assert found(text, head("text/css")) == {}


XML = {
    "sitemap": (
        "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
        "<url><loc>http://a.example/x</loc></url></urlset>",
        "x",
        M,
    ),
    "sitemap index": (
        "<sitemapindex><sitemap><loc>http://a.example/x.xml</loc></sitemap></sitemapindex>",
        "x.xml",
        M,
    ),
    "sitemap image": (
        "<urlset xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>"
        "<url><image:image><image:loc>/x.png</image:loc></image:image></url></urlset>",
        "x.png",
        E,
    ),
    "RSS link": ("<rss><channel><item><link>http://a.example/x</link></item></channel></rss>", "x", L),
    "RSS enclosure": ("<rss><channel><item><enclosure url='/x.mp3'/></item></channel></rss>", "x.mp3", E),
    "RSS guid": ("<rss><channel><item><guid>http://a.example/x</guid></item></channel></rss>", "x", L),
    "RSS description": (
        "<rss><channel><item><description>&lt;img src=/x.png&gt;</description></item></channel></rss>",
        "x.png",
        E,
    ),
    "RSS image": ("<rss><channel><image><url>/x.png</url></image></channel></rss>", "x.png", E),
    "Atom link": (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/x'/></entry></feed>",
        "x",
        L,
    ),
    "Atom enclosure": ("<feed><entry><link rel='enclosure' href='/x.mp3'/></entry></feed>", "x.mp3", E),
    "Atom content src": ("<feed><entry><content src='/x.html'/></entry></feed>", "x.html", E),
    "media thumbnail": (
        "<rss xmlns:m='http://search.yahoo.com/mrss/'><m:thumbnail url='/x.jpg'/></rss>",
        "x.jpg",
        E,
    ),
    "xml-stylesheet": (
        "<?xml version='1.0'?><?xml-stylesheet type='text/xsl' href='/x.xsl'?><a/>",
        "x.xsl",
        E,
    ),
    "SVG image": (
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>"
        "<image xlink:href='/x.png'/></svg>",
        "x.png",
        E,
    ),
    "SVG link": ("<svg xmlns='http://www.w3.org/2000/svg'><a href='/x.html'/></svg>", "x.html", L),
    "SVG style": (
        "<svg xmlns='http://www.w3.org/2000/svg'><style>a{b:url(/x.png)}</style></svg>",
        "x.png",
        E,
    ),
    "DASH": ("<MPD><Period><BaseURL>/x.mp4</BaseURL></Period></MPD>", "x.mp4", E),
    "broken XML": ("<rss><channel><item><link>http://a.example/x</link><title>a & b</title></item>", "x", L),
}


@pytest.mark.parametrize("form", XML)
def test_xml(form: str) -> None:
    text, path, hop = XML[form]
    assert found(text, head("application/xml")).get(of(path)) is hop


def test_xhtml_served_as_xml_is_read_as_html() -> None:
    text = (
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>"
        "<body><img src='/x.png'/></body></html>"
    )
    assert found(text, head("application/xml")) == {of("x.png"): E}


def test_entities_are_not_expanded() -> None:
    text = (
        "<!DOCTYPE r [<!ENTITY a 'secret'>]>"
        "<rss><link>http://a.example/&a;</link><link>http://a.example/ok</link></rss>"
    )
    assert found(text, head("text/xml")) == {of(""): L, of("ok"): L}


@pytest.mark.timeout(20)
def test_a_bomb_of_entities_does_no_harm() -> None:
    bomb = "".join(f"<!ENTITY {chr(98 + n)} '{('&' + chr(97 + n) + ';') * 10}'>" for n in range(20))
    text = (
        f"<!DOCTYPE r [<!ENTITY a 'http://a.example/x'>{bomb}]>"
        "<rss><link>http://a.example/ok</link><link>&u;</link></rss>"
    )
    assert found(text, head("text/xml")).keys() <= {of("ok")}


def test_compressed_sitemap_file() -> None:
    data = gzip.compress(b"<urlset><url><loc>http://a.example/x</loc></url></urlset>")
    assert found(data, head("application/x-gzip"), Url("http://a.example/sitemap.xml.gz")) == {of("x"): M}


def test_large_sitemap_within_the_limit() -> None:
    text = (
        "<urlset>"
        + "".join(f"<url><loc>http://a.example/{n}</loc></url>" for n in range(30_000))
        + "</urlset>"
    )
    assert len(found(text, head("text/xml"))) == 30_000


DATA = {
    "JSON address": ('{"a": {"b": ["http://a.example/x"]}}', "application/json", "x", X),
    "JSON url key": ('{"url": "/x"}', "application/json", "x", L),
    "web manifest icon": ('{"icons": [{"src": "x.png"}]}', "application/manifest+json", "dir/x.png", E),
    "web manifest start": ('{"start_url": "/x"}', "application/manifest+json", "x", L),
    "playlist line": ("#EXTM3U\n#EXTINF:10,\nx.ts\n", "application/vnd.apple.mpegurl", "dir/x.ts", E),
    "playlist key": (
        '#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="/x.key"\n',
        "application/x-mpegURL",
        "x.key",
        E,
    ),
    "text list": ("http://a.example/x\nhttp://a.example/y\n", "text/plain", "x", M),
    "robots sitemap": ("User-agent: *\nSitemap: /x.xml\n", "text/plain", "x.xml", M),
    "address in prose": ("See http://a.example/x, please.", "text/plain", "x", X),
}


@pytest.mark.parametrize("form", DATA)
def test_data(form: str) -> None:
    text, mime, path, hop = DATA[form]
    assert found(text, head(mime)).get(of(path)) is hop


def test_pdf_links() -> None:
    document = pikepdf.new()
    page = document.add_blank_page()
    action = pikepdf.Dictionary(S=pikepdf.Name.URI, URI=pikepdf.String("http://a.example/x"))
    page.obj.Annots = document.make_indirect(
        pikepdf.Array(
            [
                pikepdf.Dictionary(
                    Type=pikepdf.Name.Annot, Subtype=pikepdf.Name.Link, Rect=[0, 0, 1, 1], A=action
                )
            ]
        )
    )
    file = BytesIO()
    document.save(file)
    assert found(file.getvalue(), head("application/pdf")) == {of("x"): L}
    assert found(file.getvalue(), head("application/octet-stream"), of("d.pdf")) == {of("x"): L}


HEADERS = {
    "location": ({"Location": "/x"}, 302, "x", R),
    "location in UTF-8": ({"Location": "/ü"}, 301, "%C3%BC", R),
    "refresh": ({"Refresh": "3; url=/x"}, 200, "x", R),
    "link preload": ({"Link": "</x.css>; rel=preload; as=style"}, 200, "x.css", E),
    "link next of several": ({"Link": '</a>; rel="prev", </x>; rel="next"; title="a, b"'}, 200, "x", L),
    "content-location": ({"Content_Location": "/x"}, 200, "x", L),
}


@pytest.mark.parametrize("form", HEADERS)
def test_headers(form: str) -> None:
    headers, status, path, hop = HEADERS[form]
    assert found("", head(status=status, **headers)).get(of(path)) is hop


def test_there_are_as_many_forms_as_promised() -> None:
    assert len(HTML) + len(CSS) + len(XML) + len(DATA) + len(HEADERS) >= 120


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


def test_guessing_from_scripts_is_asked_for() -> None:
    page = (
        "<script>var next = '/x.html', cdn = \"https://b.example/y\", t = 'text/html', v = '1.2.3';</script>"
    )
    assert found(page) == {}
    assert found(page, limits=LinkLimits(guess=True)) == {of("x.html"): X, "https://b.example/y": X}
    assert found("load('/x.js')", head("text/javascript"), limits=LinkLimits(guess=True)) == {of("x.js"): X}


SCRIPT = """import{a as b}from"./a.js";import"./b.js";import c, * as d from '../c.js'
export * from "./d.js"
export {b}
import e from "./e.js"
export default 5
import("./f.js"); const later = () => import(/* webpackChunkName: "g" */ `./g.js`)
importScripts("h.js", 'i.js'); new Worker(new URL("./j.js", import.meta.url), {type: "module"})
const wasm = new URL("k.wasm", import.meta.url), odd = /["'`]/.test("x") ? import("./l.js") : 1 / 2
function test() { return/'/.test(odd) }
import("./m.js")
// import "./no1.js"
/* import("./no2.js") */ const text = "import n from './no3.js'", more = `import "./no4.js"`
load.import("./no5.js"); import vue from "vue"; import(`./no6-${odd}.js`); import.meta.url
export default "./no7.js"
"""


def test_what_a_script_loads_is_a_part_and_not_a_guess() -> None:
    expected = {of(f"dir/{name}.js"): E for name in "abdefghijlm"} | {of("c.js"): E, of("dir/k.wasm"): E}
    url = Url(of("dir/app.js"))
    for mime in ("text/javascript", "application/ecmascript"):
        assert found(SCRIPT, head(mime), url=url) == expected
    assert found(SCRIPT, head(""), url=url) == expected  # by its name
    assert found(f"<script type=module>{SCRIPT}</script>") == expected


def test_a_worker_is_relative_to_the_page_that_runs_the_script() -> None:
    body = b"new Worker('w.js'); new SharedWorker(`s.js`)"
    script, limits = Url(of("js/app.js")), LinkLimits()
    links = extract(script, head("text/javascript"), BytesIO(body), limits, page=PAGE).links
    assert dict(links) == {of("dir/w.js"): E, of("dir/s.js"): E}
    assert extract(script, head("text/javascript"), BytesIO(body), limits).links == []
    assert found("<script>new Worker('w.js')</script>") == {of("dir/w.js"): E}


def test_import_maps_name_parts() -> None:
    names = {"imports": {"vue": "/v.js", "lib/": "/lib/"}, "scopes": {"/old/": {"vue": "./old.js"}}}
    page = f"""<script type=importmap>{json.dumps(names)}</script>
        <script type=module>import "vue"; import("lib/dyn.js"); import "other"</script>"""
    assert found(page) == dict.fromkeys(map(of, ("v.js", "dir/old.js", "lib/dyn.js")), E)


def test_menus_that_jump_to_a_page() -> None:
    def menu(*values: str, handler: str = "") -> dict[str, Hop]:
        options = "".join(f'<option value="{value}">x</option>' for value in values)
        return found(
            f'<select {handler and f"onchange={handler}"}><option value="">-</option>{options}</select>'
        )

    assert menu("x.html", "/y/", "?z=1", "#") == dict.fromkeys(
        map(of, ("dir/x.html", "y/", "dir/page.html?z=1")), L
    )
    assert menu("http://b.example/x", "http://b.example/y") == dict.fromkeys(
        ("http://b.example/x", "http://b.example/y"), L
    )
    assert menu("about", "0", handler="location=this.value") == {of("dir/about"): L}
    assert menu("de", "nl", handler="location='?l='+value") == {}
    assert menu("red", "green", "a.html") == {}
    assert menu("image/png", "12.5", "a.b") == {}


def test_an_e_mail_address_without_its_scheme_is_not_asked() -> None:
    page = """<link rev=made href="me@b"><link rev=made href="mailto:me@b.example"><a href=me.too@b.example>
        <a href=photo@2x.jpg><img src=logo@2x.png>"""
    assert found(page) == {of("dir/photo@2x.jpg"): L, of("dir/logo@2x.png"): E}


def test_style_sheets_state_their_encoding() -> None:
    body = '@charset "iso-8859-1";\np { background: url(\u00e9.png?\u00e9) }'.encode("latin-1")
    assert found(body, head("text/css")) == {of("dir/%C3%A9.png?%E9"): E}
    assert found(body, head("text/css; charset=iso-8859-7")) == {of("dir/%CE%B9.png?%E9"): E}
    assert found(b" " + body, head("text/css")) == {of("dir/%C3%A9.png?%E9"): E}  # not UTF-8: windows-1252
    greek = '@charset "iso-8859-7";p{background:url(\u03b9.png)}'.encode("iso-8859-7")
    assert found(greek, head("text/css")) == {of("dir/%CE%B9.png"): E}


def test_templates_of_xslt_are_not_addresses() -> None:
    sheet = (
        '<x:stylesheet xmlns:x="http://www.w3.org/1999/XSL/Transform"><a href="{s:loc}"/><img src="/x.png"/>'
    )
    assert found(f"{sheet}</x:stylesheet>", head("text/xml")) == {of("x.png"): E}


def test_parts_of_declarative_shadow_roots() -> None:
    page = "<x-y><template shadowrootmode=open><a href=/x></a><img src=/y.png></template></x-y>"
    assert found(page) == {of("x"): L, of("y.png"): E}


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
