"""Links in scripts, import maps, menus, style sheets and shadow roots."""

import json
from io import BytesIO

import pytest
from harvest_links import PAGE, E, L, X, found, head, of

from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.links.extract import extract
from webdepot.model import Hop
from webdepot.url import Url

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


def test_data_that_a_script_asks_its_own_site_for_is_a_part() -> None:
    body = b"""fetch('a.json').then(show); window.fetch(`/b`); x.open("GET", "/c?d=1", true); fetch("/no", {method: "POST"});
        fetch("https://b.example/no"); fetch('//b.example/no'); prefetch("no"); x.open("POST", "/no"); fetch(no); "fetch('no')" """
    script, limits = Url(of("js/app.js")), LinkLimits()
    links = extract(script, head("text/javascript"), BytesIO(body), limits, page=PAGE).links
    assert dict(links) == dict.fromkeys(map(of, ("dir/a.json", "b", "c?d=1")), E)


def test_a_file_that_a_script_may_load_is_relative_to_the_page() -> None:
    body = b"ask('search/index.json'); load('./widget'); load('/data/a.json')"
    script, limits = Url(of("js/app.js")), LinkLimits(guess=True)
    links = extract(script, head("text/javascript"), BytesIO(body), limits, page=PAGE).links
    assert dict(links) == dict.fromkeys(map(of, ("dir/search/index.json", "js/widget", "data/a.json")), X)
    alone = extract(script, head("text/javascript"), BytesIO(body), limits).links
    assert dict(alone) == dict.fromkeys(map(of, ("js/search/index.json", "js/widget", "data/a.json")), X)


WEBPACK = {
    # the runtime of Docusaurus 3 (webpack 5), of Next.js, of create-react-app (webpack 4), and with files named by number
    """d.u=e=>"assets/js/"+({48:"a94703ab","k-2":"x"}[e]||e)+"."+{48:"baf1",53:"4d66"}[e]+".js",d.p="/";""": ["assets/js/a94703ab.baf1.js", "assets/js/53.4d66.js"],
    """a.u=e=>"static/chunks/"+(7===e?"main":8===e?"b":e)+"."+({7:"y",8:"z"})[e]+".js",a.miniCssF=e=>"static/css/"+({8:"q"})[e]+".css",a.p="/_next/";""": [
        "_next/static/chunks/main.y.js", "_next/static/chunks/b.z.js", "_next/static/css/q.css"],
    """function s(e){return c.p+"static/js/"+({1:"q"}[e]||e)+"."+{3:"6a8",1:"0"}[e]+".chunk.js"}c.p="http://a.example/app/";""": [
        "app/static/js/q.0.chunk.js", "app/static/js/3.6a8.chunk.js"],
    """d.u = function (e) { return e + ".bundle.js" }; d.p = url + "../"; d.e(17).then(run)""": ["17.bundle.js"],
    """d.u=e=>"a/"+f(e)+{1:"b"}[e]+".js",d.p="/";""": [],
    """d.u=e=>"a/"+{1:"b"}[e]+".js";x.p="/";""": [],
    """d.u=e=>{},d.p="/";""": [],
}  # fmt: skip


@pytest.mark.parametrize("script", WEBPACK)
def test_the_files_in_the_tables_of_webpack_are_parts(script: str) -> None:
    expected = dict.fromkeys(map(of, WEBPACK[script]), E)
    assert found(script, head("text/javascript"), url=Url(of("dir/runtime.js"))) == expected
    assert found(f"<script>{script}</script>") == expected


def test_files_of_webpack_without_a_folder_are_relative_to_the_page() -> None:
    body = b'd.u=e=>"js/"+{1:"b"}[e]+".js";d.p="";'
    links = extract(
        Url(of("js/app.js")), head("text/javascript"), BytesIO(body), LinkLimits(), page=PAGE
    ).links
    assert dict(links) == {of("dir/js/b.js"): E}


def test_data_that_sveltekit_fetches_when_a_link_is_clicked() -> None:
    page = "<script>{__sveltekit_1wo = {}; kit.start(app, element, {node_ids: [0, 4], data: [null,DATA]})}</script>"
    data = page.replace("DATA", '{type:"data",data:{tons:700}}')
    for path, address in {
        "": "__data.json",
        "a/b": "a/b/__data.json",
        "a/?x=1": "a/__data.json",
        "a.html": "a.html__data.json",
    }.items():
        assert found(data, url=Url(of(path))) == {of(address): E}
    assert found(page.replace("DATA", "null")) == found(data, head(status=404)) == {}


def test_the_list_of_pages_with_data_that_nuxt_fetches_when_a_link_is_clicked() -> None:
    page = '<script>window.__NUXT__={};window.__NUXT__.config={public:{},app:{baseURL:"BASE",BUILDbuildAssetsDir:"/_nuxt/",cdnURL:"CDN"}}</script>'
    for base, cdn, address in (
        ("/", "", of("_nuxt/builds/meta/04a5-bb18.json")),
        ("/app/", "", of("app/_nuxt/builds/meta/04a5-bb18.json")),
        ("/", "http://cdn.example/x/", "http://cdn.example/x/_nuxt/builds/meta/04a5-bb18.json"),
    ):
        html = page.replace("BASE", base).replace("CDN", cdn)
        assert found(html.replace("BUILD", 'buildId:"04a5-bb18",')) == {address: E}
        assert found(html.replace("BUILD", "")) == {}, "an older version"


def test_services_of_images_and_other_data_of_viewers() -> None:
    old = {
        "resource": {
            "@id": "/full.jpg",
            "service": {"@context": "http://iiif.io/api/image/2/context.json", "@id": "/scan/1"},
        }
    }
    new = {
        "body": {
            "id": "/full.jpg",
            "service": [{"id": "/scan/1/", "type": "ImageService3", "profile": "level1"}],
        }
    }
    for manifest in (old, new):
        assert found(json.dumps(manifest), head("application/json"))[of("scan/1/info.json")] == E
    page = "<redoc spec-url=api.yaml></redoc><div hx-get=/part></div><script>show('scan.dzi', 'ports.geojson')</script>"
    assert found(page, limits=LinkLimits(guess=True)) == {
        of("dir/api.yaml"): E, of("part"): E, of("dir/scan.dzi"): X, of("dir/ports.geojson"): X
    }  # fmt: skip


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
    page = """<?xml version="1.0"?><!-- <html> --><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
        xmlns:sitemap="http://www.sitemaps.org/schemas/sitemap/0.9"><xsl:template match="/"><html lang="en"><body>
        <a href="{sitemap:loc}"><xsl:value-of select="sitemap:loc"/></a><img src="/x.png"/></body></html>"""
    assert found(f"{page}</xsl:template></xsl:stylesheet>", head("application/xml")) == {of("x.png"): E}


def test_numbers_in_feeds_are_not_addresses() -> None:
    feed = """<rss xmlns:slash="http://purl.org/rss/1.0/modules/slash/"><channel><item><link>/x</link>
        <comments>/x#comments</comments><slash:comments>4</slash:comments><guid>http://a.example/?p=4</guid>"""
    assert found(f"{feed}</item></channel></rss>", head("application/rss+xml")) == dict.fromkeys(
        (of("x"), of("?p=4")), L
    )


def test_parts_of_declarative_shadow_roots() -> None:
    page = "<x-y><template shadowrootmode=open><a href=/x></a><img src=/y.png></template></x-y>"
    assert found(page) == {of("x"): L, of("y.png"): E}
