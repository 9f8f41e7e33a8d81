"""Pages that the libraries of others fill: viewers of scanned books (IIIF, deep zoom), a map, tables, formulas, diagrams,
slides, galleries, web components, pages that load parts of other pages (htmx, Turbo), and a GraphQL interface.
"""

import json
import shutil
from io import BytesIO
from pathlib import Path

from bench.fidelity_sites import SQUARE, Site
from bench.fidelity_software import OPENAPI, SHIPS, _npm, _write
from bench.fidelity_software import TILE as SEA
from PIL import Image, ImageDraw

WIDE, HIGH, TILE = 1600, 1200, 256
FILES = {
    "openseadragon": "openseadragon/build/openseadragon",
    "mirador.js": "mirador/dist/mirador.min.js",
    "reveal": "reveal.js/dist",
    "mermaid/mermaid.mjs": "mermaid/dist/mermaid.esm.min.mjs",
    "mermaid/chunks/mermaid.esm.min": "mermaid/dist/chunks/mermaid.esm.min",
    "mathjax": "mathjax/es5",
    "jquery.js": "jquery/dist/jquery.min.js",
    "tables/tables.js": "datatables.net/js/jquery.dataTables.min.js",
    "tables/css/tables.css": "datatables.net-dt/css/jquery.dataTables.min.css",
    "tables/images": "datatables.net-dt/images",
    "photoswipe": "photoswipe/dist",
    "shoelace": "@shoelace-style/shoelace/cdn",
    "chart.js": "chart.js/dist/chart.umd.min.js",
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "turbo.js": "@hotwired/turbo/dist/turbo.es2017-umd.js",
    "ol.js": "ol/dist/ol.js",
    "ol.css": "ol/ol.css",
    "redoc.js": "redoc/bundles/redoc.standalone.js",
}


def build_viewers(kept: Path) -> Site:
    place = _npm(kept, "viewers")
    folder = place / "site"
    shutil.rmtree(folder, ignore_errors=True)
    for target, source in FILES.items():
        path = place / "node_modules" / source
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, folder / target, ignore=shutil.ignore_patterns("*.map", "*.d.ts"))
        else:
            shutil.copy(path, folder / target)
    redoc = folder / "redoc.js"  # without a picture of another host
    redoc.write_text(
        redoc.read_text(encoding="utf-8").replace("https://cdn.redoc.ly/redoc/logo-mini.svg", "ship.svg")
    )
    _write_scan(folder)
    _write(folder, {**PAGES, **DATA})
    pages = ("/", *(f"/{name}" for name in PAGES if name != "index.html"))
    return Site(
        name="viewers", pages=pages, folder=folder, with_base=("/manifest.json", "/iiif/log/info.json")
    )


def _write_scan(folder: Path) -> None:
    """A scanned page: as a pyramid of tiles in Microsoft's deep zoom format, and as a IIIF image of level 0."""
    scan = Image.new("RGB", (WIDE, HIGH), "#f4ecd8")
    pen = ImageDraw.Draw(scan)
    for row in range(0, HIGH, 40):
        pen.line((60, row, WIDE - 60, row), fill="#553322", width=3)
        pen.text((80, row + 8), f"Line {row // 40} of the log of the Ballast", fill="black")
    levels = max(WIDE, HIGH - 1).bit_length()
    for level in range(levels + 1):
        shrunk = 2 ** (levels - level)
        small = scan.resize((-(-WIDE // shrunk), -(-HIGH // shrunk)))
        for x in range(0, small.width, TILE):
            for y in range(0, small.height, TILE):
                box = (x, y, min(x + TILE, small.width), min(y + TILE, small.height))
                _save(small.crop(box), folder / f"scan_files/{level}/{x // TILE}_{y // TILE}.jpg")
    for factor in (1, 2, 4, 8):
        size = TILE * factor
        for x in range(0, WIDE, size):
            for y in range(0, HIGH, size):
                box = (x, y, min(x + size, WIDE), min(y + size, HIGH))
                wide, high = box[2] - x, box[3] - y
                tile = scan.crop(box).resize((-(-wide // factor), -(-high // factor)))
                region = "full" if (wide, high) == (WIDE, HIGH) else f"{x},{y},{wide},{high}"
                _save(tile, folder / f"iiif/log/{region}/{tile.width},/0/default.jpg")
    _save(scan.resize((200, 150)), folder / "iiif/log/full/200,/0/default.jpg")


def _save(picture: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = BytesIO()
    picture.save(data, "JPEG", quality=70)
    path.write_bytes(data.getvalue())


def _html(title: str, body: str, head: str = "") -> str:
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>{title}</title>{head}</head>"
        f"<body><h1>{title}</h1>{body}</body></html>"
    )


NAMES = [
    "zoom",
    "book",
    "slides",
    "diagram",
    "formula",
    "table",
    "gallery",
    "components",
    "chart",
    "query",
    "parts",
    "turbo",
    "turbo-tides",
    "map",
    "interface",
]
PAGES = {
    "index.html": _html("Viewers", "<ul>" + "".join(f"<li><a href=/{name}.html>{name}</a>" for name in NAMES) + "</ul>"),
    "zoom.html": _html(
        "Zoom",
        "<div id=view style='width:800px;height:500px'></div><script src=openseadragon/openseadragon.min.js></script>"
        "<script>OpenSeadragon({id: 'view', prefixUrl: 'openseadragon/images/', tileSources: 'scan.dzi', immediateRender: true, drawer: 'canvas'})</script>",
    ),
    "book.html": _html(
        "Book",
        "<div id=view style='position:relative;width:1000px;height:600px'></div><script src=mirador.js></script>"
        "<script>Mirador.viewer({id: 'view', windows: [{manifestId: new URL('manifest.json', location.href).href}]})</script>",
    ),
    "slides.html": "<!doctype html><html><head><meta charset=utf-8><title>Slides</title><link rel=stylesheet href=reveal/reveal.css>"
    "<link rel=stylesheet href=reveal/theme/black.css></head><body><div class=reveal><div class=slides><section><h2>The harbour</h2>"
    "<p><a href=map.html>Map</a></p></section><section data-background-image=ship.svg><h2>The ship</h2></section></div></div>"
    "<script src=reveal/reveal.js></script><script>Reveal.initialize({hash: true, transition: 'none'})</script></body></html>",
    "diagram.html": _html(
        "Diagram",
        "<pre class=mermaid>flowchart LR; Emden --> Antwerp; Antwerp --> Bergen</pre><pre class=mermaid>pie title Cargo\n"
        '"Grain" : 40\n"Salt" : 60</pre><script type=module>import mermaid from "./mermaid/mermaid.mjs";'
        "mermaid.initialize({startOnLoad: true});</script>",
    ),
    "formula.html": _html(
        "Formula",
        "<p>The tide is \\(h = a \\cos(\\omega t + \\phi)\\), and $$\\int_0^T h\\,dt = \\mathcal{H} \\quad \\mathbb{R}$$</p>",
        "<script>MathJax = {options: {enableMenu: false}}</script><script id=MathJax-script async src=mathjax/tex-mml-chtml.js></script>",
    ),
    "table.html": _html(
        "Table",
        "<table id=ships class=display><thead><tr><th>Ship<th>Tons</thead></table><script src=jquery.js></script><script src=tables/tables.js></script>"
        "<script>$('#ships').DataTable({serverSide: true, ajax: 'rows.json', pageLength: 10})</script>",
        "<link rel=stylesheet href=tables/css/tables.css>",
    ),
    "gallery.html": _html(
        "Gallery",
        "<div id=gallery>" + "".join(f"<a href=large-{n}.svg data-pswp-width=1200 data-pswp-height=600 target=_blank><img src=small-{n}.svg alt=''></a>" for n in range(4))
        + "</div><picture><source media='(min-width: 900px)' srcset='wide-1x.svg, wide-2x.svg 2x'><img src=narrow.svg alt=''></picture>"
        "<script type=module>import PhotoSwipeLightbox from './photoswipe/photoswipe-lightbox.esm.js';"
        "const box = new PhotoSwipeLightbox({gallery: '#gallery', children: 'a', pswpModule: () => import('./photoswipe/photoswipe.esm.js')});"
        "box.init();</script>",
        "<link rel=stylesheet href=photoswipe/photoswipe.css>",
    ),
    "components.html": _html(
        "Components",
        "<sl-card><strong slot=header>The Ballast</strong> 700 tons <sl-button variant=primary>Board</sl-button> <sl-icon name=gear></sl-icon></sl-card>"
        "<sl-tab-group><sl-tab slot=nav panel=a>Crew</sl-tab><sl-tab slot=nav panel=b>Cargo</sl-tab>"
        "<sl-tab-panel name=a>Ten sailors</sl-tab-panel><sl-tab-panel name=b>Grain</sl-tab-panel></sl-tab-group>"
        "<sl-rating value=3></sl-rating><sl-include src=part.html></sl-include>",
        "<link rel=stylesheet href=shoelace/themes/light.css><script type=module src=shoelace/shoelace-autoloader.js></script>",
    ),
    "chart.html": _html(
        "Chart",
        "<div style='width:600px'><canvas id=chart></canvas></div><script src=chart.js></script><script>fetch('cargo.json').then(answer => answer.json()).then(data => "
        "new Chart('chart', {type: 'bar', data, options: {animation: false}}))</script>",
    ),
    "query.html": _html(
        "Query",
        "<ul id=ships></ul><p id=port></p><script>const ask = (operationName, variables, then) => fetch('/graphql', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        "body: JSON.stringify({operationName, variables, query: `query ${operationName} { name }`})}).then(answer => answer.json()).then(then);"
        "ask('Ships', {first: 3}, ({data}) => { document.getElementById('ships').innerHTML = data.ships.map(ship => `<li>${ship}`).join('') });"
        "ask('Port', {name: 'Emden'}, ({data}) => { document.getElementById('port').textContent = data.port });</script>",
    ),
    "parts.html": _html(
        "Parts",
        "<div hx-get=part.html hx-trigger=load>Loading</div><div style='height:1500px'></div><div hx-get=rest.html hx-trigger=revealed>Loading the rest</div>",
        "<script src=htmx.js></script>",
    ),
    "turbo.html": _html("Turbo", "<p><a href=/turbo-tides.html>Tides</a></p><turbo-frame id=crew src=/turbo-crew.html>Loading</turbo-frame>", "<script src=turbo.js></script>"),
    "turbo-tides.html": _html("Tides", "<p><a href=/turbo.html>Back</a></p><turbo-frame id=crew src=/turbo-crew.html loading=lazy>Loading</turbo-frame>", "<script src=turbo.js></script>"),
    "map.html": _html(
        "Sea map",
        "<div id=map style='width:600px;height:400px'></div><script src=ol.js></script><script>new ol.Map({target: 'map', layers: ["
        "new ol.layer.Tile({source: new ol.source.XYZ({url: 'sea/{z}/{x}/{y}.svg', maxZoom: 2, transition: 0})}),"
        "new ol.layer.Vector({source: new ol.source.Vector({url: 'ports.geojson', format: new ol.format.GeoJSON()})})],"
        "view: new ol.View({center: [0, 0], zoom: 2})})</script>",
        "<link rel=stylesheet href=ol.css>",
    ),
    "interface.html": _html("Interface", "<redoc spec-url=openapi.json></redoc><script src=redoc.js></script>"),
}  # fmt: skip
DATA = {
    "part.html": "<p>A part of the page: <a href=/map.html>the map</a></p>",
    "rest.html": "<p>The rest of the page</p>",
    "turbo-crew.html": "<turbo-frame id=crew><p>Ten sailors and a cook</p></turbo-frame>",
    "ship.svg": SQUARE.format("teal"),
    "narrow.svg": SQUARE.format("red"),
    "wide-1x.svg": SQUARE.format("orange"),
    "wide-2x.svg": SQUARE.format("yellow"),
    **{f"small-{number}.svg": SQUARE.format("purple") for number in range(4)},
    **{f"large-{number}.svg": SQUARE.format("purple") for number in range(4)},
    "scan.dzi": f"<?xml version='1.0'?><Image TileSize='{TILE}' Overlap='0' Format='jpg' xmlns='http://schemas.microsoft.com/deepzoom/2008'>"
    f"<Size Width='{WIDE}' Height='{HIGH}'/></Image>",
    "manifest.json": json.dumps(
        {
            "@context": "http://iiif.io/api/presentation/2/context.json",
            "@type": "sc:Manifest",
            "@id": "{base}/manifest.json",
            "label": "The log of the Ballast",
            "sequences": [{"@type": "sc:Sequence", "canvases": [{
                "@type": "sc:Canvas", "@id": "{base}/canvas/1", "label": "Page 1", "width": WIDE, "height": HIGH,
                "images": [{"@type": "oa:Annotation", "motivation": "sc:painting", "on": "{base}/canvas/1", "resource": {
                    "@type": "dctypes:Image", "@id": "{base}/iiif/log/full/full/0/default.jpg", "width": WIDE, "height": HIGH,
                    "service": {"@context": "http://iiif.io/api/image/2/context.json", "@id": "{base}/iiif/log", "profile": "http://iiif.io/api/image/2/level0.json"},
                }}],
            }]}],
        }
    ),
    "iiif/log/info.json": json.dumps(
        {
            "@context": "http://iiif.io/api/image/2/context.json",
            "@id": "{base}/iiif/log",
            "protocol": "http://iiif.io/api/image",
            "width": WIDE,
            "height": HIGH,
            "profile": ["http://iiif.io/api/image/2/level0.json"],
            "tiles": [{"width": TILE, "scaleFactors": [1, 2, 4, 8]}],
        }
    ),
    "rows.json": json.dumps(
        {"draw": 1, "recordsTotal": 60, "recordsFiltered": 60, "data": [[f"{name} {n}", 100 * n] for n in range(10) for name in SHIPS][:10]}
    ),
    "cargo.json": json.dumps({"labels": SHIPS, "datasets": [{"label": "tons", "data": [4, 8, 15, 16, 23, 42]}]}),
    "graphql/Ships.json": json.dumps({"data": {"ships": SHIPS}}),
    "graphql/Port.json": json.dumps({"data": {"port": "Emden has ten quays"}}),
    "ports.geojson": json.dumps(
        {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [7, 53]}}]}
    ),
    **{f"sea/2/{x}/{y}.svg": SEA.format(colour=(x + 4 * y) * 9, name=f"{x}, {y}") for x in range(4) for y in range(4)},
    "openapi.json": json.dumps(OPENAPI),
}  # fmt: skip
