"""Every way to write a static link."""

import gzip
from io import BytesIO

import pikepdf
import pytest
from harvest_links import E, L, M, R, X, found, head, of

from webdepot.url import Url

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
    "VitePress page": ("<link rel=modulepreload href=/x.md.Ab-1.lean.js>", "x.md.Ab-1.js", E),
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
        X,
    ),
    "link in RSS description": (
        "<rss><channel><item><description>&lt;a href=/x&gt;x&lt;/a&gt;</description></item></channel></rss>",
        "x",
        L,
    ),
    "Atom content": (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><content type='html'>&lt;img src=/x.png&gt;</content></entry></feed>",
        "x.png",
        X,
    ),
    "XHTML in Atom content": (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>"
        "<p><img src='/x.png'/></p></div></content></entry></feed>",
        "x.png",
        X,
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
