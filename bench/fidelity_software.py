"""Sites made with published software, which is installed and built here: React, VitePress and widgets from npm,
Sphinx and MkDocs from PyPI, DokuWiki from Debian. Installed software is kept in a folder, so that the next run is
faster.
"""

import json
import shutil
import subprocess
import sys
import wave
from pathlib import Path

from bench.fidelity_sites import SQUARE, Site

NPM = {
    "react": ("vite@6.4.6", "react@19.3.1", "react-dom@19.3.1", "react-router@7.18.5"),
    "vitepress": ("vitepress@1.6.4",),
    "widgets": (
        "leaflet@1.9.4",
        "video.js@8.23.3",
        "swagger-ui-dist@5.29.0",
        "pdfjs-dist@4.10.38",
        "hls.js@1.7.4",
    ),
    "vue": ("vue@3.5.45", "vue-router@4.6.4", "vite@5.4.21", "@vitejs/plugin-vue@5.2.4"),
    "docusaurus": (
        "@docusaurus/core@3.8.1",
        "@docusaurus/preset-classic@3.8.1",
        "react@18.3.1",
        "react-dom@18.3.1",
        "@mdx-js/react@3.1.0",
        "webpack@5.99.9",
    ),
    "viewers": (
        "openseadragon@6.1.1",
        "mirador@3.4.3",
        "reveal.js@6.0.2",
        "mermaid@11.17.2",
        "mathjax@3.2.2",
        "jquery@3.7.1",
        "datatables.net@1.13.11",
        "datatables.net-dt@1.13.11",
        "photoswipe@5.4.4",
        "@shoelace-style/shoelace@2.20.1",
        "chart.js@4.6.1",
        "htmx.org@2.0.11",
        "@hotwired/turbo@8.0.23",
        "ol@10.10.0",
        "redoc@2.5.4",
    ),
    "docsify": ("docsify@5.0.0", "husky@9.1.7"),
    "svelte": ("@sveltejs/vite-plugin-svelte@5.1.1", "page@1.9.0", "svelte@5.57.3", "vite@6.4.6"),
    "tiddlywiki": ("tiddlywiki@5.4.1",),
    "next": ("next@15.5.29", "react@19.3.1", "react-dom@19.3.1"),
    "sveltekit": (
        "@sveltejs/kit@2.70.4",
        "@sveltejs/adapter-static@3.0.10",
        "@sveltejs/vite-plugin-svelte@5.1.1",
        "svelte@5.57.3",
        "vite@6.4.6",
    ),
    "astro": ("astro@5.18.2",),
    "nuxt": ("nuxt@3.21.11",),
    "angular": (
        "@angular/build@19.2.27",
        "@angular/cli@19.2.27",
        "@angular/common@19.2.25",
        "@angular/compiler@19.2.25",
        "@angular/compiler-cli@19.2.25",
        "@angular/core@19.2.25",
        "@angular/platform-browser@19.2.25",
        "@angular/router@19.2.25",
        "rxjs@7.8.2",
        "tslib@2.9.1",
        "typescript@5.8.3",
        "zone.js@0.15.1",
    ),
    "storybook": (
        "@storybook/addon-essentials@8.6.19",
        "@storybook/html-vite@8.6.18",
        "storybook@8.6.19",
        "vite@6.4.6",
    ),
    "hexo": (
        "hexo@7.3.0",
        "hexo-theme-landscape@1.1.0",
        "hexo-renderer-marked@7.0.1",
        "hexo-renderer-ejs@2.0.0",
        "hexo-renderer-stylus@3.0.1",
        "hexo-generator-index@4.0.0",
        "hexo-generator-archive@2.0.0",
        "hexo-generator-category@2.0.0",
        "hexo-generator-tag@2.0.0",
        "hexo-generator-feed@3.0.0",
    ),
}
SPHINX = ("sphinx==8.1.3", "furo==2024.8.6")
MKDOCS = ("mkdocs==1.6.1", "mkdocs-material==9.6.14")
DEBIAN = (
    "dokuwiki",
    "libphp-simplepie",
    "php-geshi",
    "php-phpseclib",
    "libjs-jquery",
    "libjs-jquery-cookie",
    "libjs-jquery-ui",
)
SHIPS = ("Ballast", "Corvina", "Dromedary", "Elbe", "Fortuna", "Galatea")
DATA_FOLDERS = (
    "pages",
    "attic",
    "media",
    "media_attic",
    "media_meta",
    "meta",
    "cache",
    "index",
    "locks",
    "tmp",
    "log",
)
INSTALL_TIMEOUT_S = 1200


class NotInstalled(Exception):
    """The software cannot be installed on this machine; the message says why."""


def build_react(kept: Path) -> Site:
    """A single-page app: routes by links and by buttons, a part loaded late, data fetched by scripts."""
    place = _npm(kept, "react")
    _write(
        place,
        {
            "index.html": "<!doctype html><title>Ships</title><link rel=stylesheet href=/ships.css>"
            "<div id=root></div><script type=module src=/main.jsx></script>",
            "vite.config.js": "export default { esbuild: { jsx: 'automatic' } }",
            "main.jsx": REACT_MAIN,
            "about.jsx": REACT_ABOUT,
            "public/ships.css": "body {font: 18px sans-serif; margin: 2em} nav a {margin-right: 1em}",
            "public/ship.svg": SQUARE.format("purple"),
            "public/data/ships.json": json.dumps(SHIPS),
            **{
                f"public/data/{number}.json": json.dumps({"name": name, "tons": 400 + 35 * number})
                for number, name in enumerate(SHIPS)
            },
        },
    )
    _run(["node_modules/.bin/vite", "build"], place)
    ships = (f"/ship/{number}" for number in range(len(SHIPS)))
    return Site(name="React", pages=("/", "/about", *ships), folder=place / "dist", fallback="/index.html")


REACT_MAIN = """
import { lazy, Suspense, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { BrowserRouter, Link, Route, Routes, useNavigate, useParams } from 'react-router'
const About = lazy(() => import('./about.jsx'))
function useData(path) {
  const [data, setData] = useState(null)
  useEffect(() => { setData(null); fetch(path).then(answer => answer.json()).then(setData) }, [path])
  return data
}
function Home() {
  const ships = useData('/data/ships.json')
  if (!ships) return <p>Loading</p>
  return <><h1>Ships</h1><ul>{ships.slice(0, 3).map((name, at) => <li key={name}><Link to={'/ship/' + at}>{name}</Link></li>)}</ul></>
}
function Ship() {
  const number = Number(useParams().number), ship = useData('/data/' + number + '.json'), go = useNavigate()
  useEffect(() => { if (ship) document.title = ship.name }, [ship])
  if (!ship) return <p>Loading</p>
  return <><h1>{ship.name}</h1><img src='/ship.svg' alt=''/><p>{ship.tons} tons of cargo</p>
    {number < 5 && <button onClick={() => go('/ship/' + (number + 1))}>Next ship</button>}</>
}
createRoot(document.getElementById('root')).render(<BrowserRouter>
  <nav><Link to='/'>Ships</Link><Link to='/about'>About</Link></nav>
  <Suspense fallback='Loading'><Routes><Route path='/' element={<Home/>}/><Route path='/about' element={<About/>}/>
  <Route path='/ship/:number' element={<Ship/>}/></Routes></Suspense></BrowserRouter>)
"""
REACT_ABOUT = (
    "export default () => <><h1>About</h1><p>This part of the app is loaded when it is opened.</p></>"
)


def build_vitepress(kept: Path) -> Site:
    """A documentation site: pages rendered by the server, then taken over by scripts."""
    place = _npm(kept, "vitepress")
    chapters = {name.lower(): name for name in SHIPS}
    items = json.dumps([{"text": text, "link": f"/guide/{name}"} for name, text in chapters.items()])
    _write(
        place,
        {
            ".vitepress/config.mjs": f"export default {{ title: 'Ships', themeConfig: {{ sidebar: {items} }} }}",
            "index.md": "---\nlayout: home\nhero: {name: Ships, text: A guide to the harbour, actions: [{text: Start, link: /guide/ballast}]}\n---\n",
            "public/ship.svg": SQUARE.format("brown"),
            **{
                f"guide/{name}.md": f"# {text}\n\n![ship](/ship.svg)\n\nThe *{text}* carries {len(text)}00 tons.\n\n"
                f"## Sailing\n\n```js\nconst ship = '{text}'\n```\n\n::: tip\nKeep a look-out from the {text}.\n:::\n"
                for name, text in chapters.items()
            },
        },
    )
    _run(["node_modules/.bin/vitepress", "build"], place)
    pages = ("/", *(f"/guide/{name}.html" for name in chapters))
    return Site(name="VitePress", pages=pages, folder=place / ".vitepress" / "dist")


def build_sphinx(kept: Path) -> Site:
    """A documentation site made with Sphinx and a theme with scripts."""
    place = kept / "sphinx"
    python = _pip(place, SPHINX)
    names = [name.lower() for name in SHIPS]
    _write(
        place / "source",
        {
            "conf.py": "project = 'Ships'\nhtml_theme = 'furo'\n",
            "index.rst": "Ships\n=====\n\n.. toctree::\n\n" + "".join(f"   {name}\n" for name in names),
            "ship.svg": SQUARE.format("maroon"),
            **{
                f"{name}.rst": f"{name.title()}\n{'=' * len(name)}\n\n.. image:: ship.svg\n\n.. py:function:: {name}(tons)\n\n"
                f"   Loads the *{name.title()}*. See :doc:`index`.\n\n.. code-block:: python\n\n   {name}(400)\n"
                for name in names
            },
        },
    )
    _run([str(python), "-m", "sphinx", "-q", "-E", "source", "html"], place)
    pages = ("/", *(f"/{name}.html" for name in names), "/genindex.html", "/search.html")
    return Site(name="Sphinx", pages=pages, folder=place / "html")


def build_mkdocs(kept: Path) -> Site:
    """A documentation site made with MkDocs and its Material theme, whose pages change without being loaded."""
    place = kept / "mkdocs"
    python = _pip(place, MKDOCS)
    theme = {"name": "material", "font": False, "features": ["navigation.instant", "content.code.copy"]}
    names = [name.lower() for name in SHIPS]
    _write(
        place,
        {
            "mkdocs.yml": json.dumps(
                {"site_name": "Ships", "site_url": "", "theme": theme, "markdown_extensions": ["admonition"]}
            ),
            "docs/index.md": "# Ships\n\n" + "".join(f"- [{name.title()}]({name}.md)\n" for name in names),
            "docs/ship.svg": SQUARE.format("black"),
            **{
                f"docs/{name}.md": f"# {name.title()}\n\n![ship](ship.svg)\n\n| tons | port |\n|---|---|\n| {len(name)}00 | Emden |\n\n"
                f'!!! note\n    Keep a look-out from the {name.title()}.\n\n```python\nload("{name}")\n```\n'
                for name in names
            },
        },
    )
    _run([str(python), "-m", "mkdocs", "build", "-q", "-c"], place)
    return Site(name="MkDocs", pages=("/", *(f"/{name}/" for name in names)), folder=place / "site")


def build_widgets(kept: Path) -> Site:
    """Pages that scripts fill: a map, a player, a description of an interface, and a PDF drawn on a canvas."""
    place = _npm(kept, "widgets")
    folder = place / "site"
    modules = place / "node_modules"
    shutil.rmtree(folder, ignore_errors=True)
    for target, source in WIDGET_FILES.items():
        path = modules / source
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / target)
    tiles = {
        f"tiles/2/{x}/{y}.svg": TILE.format(colour=(x + 4 * y) * 9, name=f"{x}, {y}")
        for x in range(4)
        for y in range(4)
    }
    _write(folder, {**WIDGET_PAGES, **tiles, "poster.svg": SQUARE.format("crimson")})
    for number in range(STREAM_PARTS):
        (folder / f"stream/low/part-{number}.aac").write_bytes(
            SILENCE * 86
        )  # 2 s of 1024 samples at 44.1 kHz
    (folder / "harbour.pdf").write_bytes(_pdf("The harbour office in Emden"))
    with wave.open(str(folder / "horn.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(bytes(range(256)) * 64)
    pages = ("/", *(f"/{name}" for name in WIDGET_PAGES if name.endswith(".html") and name != "index.html"))
    return Site(
        name="widgets",
        pages=pages,
        folder=folder,
        types={"/pdf.mjs": "text/javascript", "/pdf.worker.mjs": "text/javascript"},
    )


STREAM_PARTS = 3
SILENCE = bytes.fromhex("fff15040 01bffc 00c800802380")
"""A silent frame of AAC (one channel, 44.1 kHz) with its ADTS header of seven bytes."""
WIDGET_FILES = {
    "leaflet.js": "leaflet/dist/leaflet.js",
    "leaflet.css": "leaflet/dist/leaflet.css",
    "images": "leaflet/dist/images",
    "video.js": "video.js/dist/video.min.js",
    "video.css": "video.js/dist/video-js.min.css",
    "hls.js": "hls.js/dist/hls.min.js",
    "swagger.js": "swagger-ui-dist/swagger-ui-bundle.js",
    "swagger.css": "swagger-ui-dist/swagger-ui.css",
    "pdf.mjs": "pdfjs-dist/build/pdf.min.mjs",
    "pdf.worker.mjs": "pdfjs-dist/build/pdf.worker.min.mjs",
}
TILE = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='256' height='256'><rect width='256' height='256' "
    "fill='hsl({colour} 60% 80%)' stroke='grey'/><text x='90' y='130'>{name}</text></svg>"
)
OPENAPI = {
    "openapi": "3.0.0",
    "info": {"title": "Harbour", "version": "1"},
    "paths": {
        f"/ships/{name.lower()}": {
            "get": {"summary": f"Where the {name} is", "responses": {"200": {"description": "ok"}}}
        }
        for name in SHIPS
    },
}
WIDGET_PAGES = {
    "index.html": "<!doctype html><meta charset=utf-8><title>Widgets</title><h1>Widgets</h1><ul><li><a href=/map.html>Map</a>"
    "<li><a href=/player.html>Player</a><li><a href=/stream.html>Stream</a><li><a href=/api.html>Interface</a><li><a href=/paper.html>Paper</a></ul>",
    "map.html": "<!doctype html><meta charset=utf-8><title>Map</title><link rel=stylesheet href=leaflet.css><h1>Map</h1>"
    "<div id=map style='width:600px;height:400px'></div><script src=leaflet.js></script><script>"
    "const map = L.map('map', {zoomAnimation: false, fadeAnimation: false}).setView([0, 0], 2);"
    "L.tileLayer('tiles/{z}/{x}/{y}.svg', {minZoom: 2, maxZoom: 2, noWrap: true}).addTo(map);"
    "L.marker([20, 10]).addTo(map).bindPopup('The harbour').openPopup();</script>",
    "player.html": "<!doctype html><meta charset=utf-8><title>Player</title><link rel=stylesheet href=video.css><h1>Player</h1>"
    "<video-js id=player controls width=480 height=270 poster=poster.svg><source src=horn.wav type=audio/wav></video-js>"
    "<script src=video.js></script><script>videojs('player')</script>",
    "stream.html": "<!doctype html><meta charset=utf-8><title>Stream</title><h1>Stream</h1><video id=player controls muted></video>"
    "<p id=words>Nothing yet</p><script src=hls.js></script><script>"
    "const hls = new Hls(); let parts = 0; hls.loadSource('stream/low/list.m3u8'); hls.attachMedia(document.getElementById('player'));"
    "hls.on(Hls.Events.FRAG_BUFFERED, () => { document.getElementById('words').textContent = ++parts + ' parts of the stream'; });</script>",
    "stream/low/list.m3u8": "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n"
    + "".join(f"#EXTINF:2.0,\npart-{number}.aac\n" for number in range(STREAM_PARTS))
    + "#EXT-X-ENDLIST\n",
    "api.html": "<!doctype html><meta charset=utf-8><title>Interface</title><link rel=stylesheet href=swagger.css><div id=ui></div>"
    "<script src=swagger.js></script><script>SwaggerUIBundle({url: 'openapi.json', dom_id: '#ui'})</script>",
    "paper.html": "<!doctype html><meta charset=utf-8><title>Paper</title><h1>Paper</h1><canvas id=page></canvas><p id=words></p>"
    "<script type=module>import * as pdf from './pdf.mjs'; pdf.GlobalWorkerOptions.workerSrc = 'pdf.worker.mjs';"
    "const page = await (await pdf.getDocument('harbour.pdf').promise).getPage(1), viewport = page.getViewport({scale: 2});"
    "const canvas = document.getElementById('page'); canvas.width = viewport.width; canvas.height = viewport.height;"
    "await page.render({canvasContext: canvas.getContext('2d'), viewport}).promise;"
    "document.getElementById('words').textContent = (await page.getTextContent()).items.map(one => one.str).join(' ');</script>",
    "openapi.json": json.dumps(OPENAPI),
}


def _pdf(words: str) -> bytes:
    """A page with one line of text."""
    drawing = f"BT /F1 18 Tf 20 60 Td ({words}) Tj ET".encode()
    parts = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 120]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(drawing), drawing),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    made, offsets = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        offsets.append(len(made))
        made += b"%d 0 obj%s endobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF\n" % len(made)
    return made + b"xref\n0 6\n0000000000 65535 f \n" + table + end


def build_dokuwiki(kept: Path) -> Site:
    """A wiki that php serves. Debian's packages are unpacked, not installed; paths in them are adapted.

    The list of recently visited pages is turned off, because it differs for each visitor.
    """
    for needed in ("php", "apt-get", "dpkg-deb"):
        if not shutil.which(needed):
            raise NotInstalled(f"{needed} is not installed")
    root = kept / "dokuwiki"
    wiki = root / "usr/share/dokuwiki"
    if not wiki.exists():
        packages = kept / "packages"
        packages.mkdir(exist_ok=True)
        _run(["apt-get", "-q", "download", *DEBIAN], packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(root)], kept)
        _move_to(root)
    data = root / "var/lib/dokuwiki/data"
    shutil.rmtree(data / "cache", ignore_errors=True)
    for folder in DATA_FOLDERS:
        (data / folder).mkdir(parents=True, exist_ok=True)
    names = [name.lower() for name in SHIPS]
    _write(
        root,
        {
            "etc/dokuwiki/local.php": f"<?php\n$conf['savedir'] = '{data}';\n$conf['title'] = 'Ships';\n$conf['useacl'] = 0;\n"
            "$conf['indexdelay'] = 0;\n$conf['license'] = '';\n$conf['breadcrumbs'] = 0;\n$conf['updatecheck'] = 0;\n",
            "var/lib/dokuwiki/data/media/ship.svg": SQUARE.format("green"),
            "var/lib/dokuwiki/data/pages/start.txt": "====== Ships ======\n\n"
            + "".join(f"  * [[{name}]]\n" for name in names),
            **{
                f"var/lib/dokuwiki/data/pages/{name}.txt": f"====== {name.title()} ======\n\n{{{{:ship.svg}}}}\n\nBack to "
                f"[[start]].\n\n===== Cargo =====\n\n^ tons ^ port ^\n| {len(name)}00 | Emden |\n\n===== Crew =====\n\nTen.\n"
                for name in names
            },
        },
    )
    pages = ("/doku.php", *(f"/doku.php?id={name}" for name in names))
    command = ("php", "-q", "-S", "{address}", "-t", str(wiki))
    return Site(name="DokuWiki", pages=pages, command=command, content=pages)


def _move_to(root: Path) -> None:
    """Adapt absolute paths in links and in PHP files to the folder of the packages."""
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            target = path.readlink()
            if target.is_absolute():
                path.unlink()
                path.symlink_to(root / target.relative_to("/"))
        elif path.suffix == ".php":
            text = path.read_bytes()
            for place in (b"/usr/share/", b"/etc/dokuwiki", b"/var/lib/dokuwiki"):
                for quote in (b"'", b'"'):
                    text = text.replace(quote + place, quote + bytes(root) + place)
            path.write_bytes(text)


def _npm(kept: Path, name: str) -> Path:
    if not shutil.which("npm"):
        raise NotInstalled("npm is not installed")
    place = kept / name
    if not (place / "node_modules").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true, "type": "module"}')
        _run(
            [
                "npm",
                "install",
                "--legacy-peer-deps",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                *NPM[name],
            ],
            place,
        )
    return place


def _pip(place: Path, packages: tuple[str, ...]) -> Path:
    """The Python of an environment with these packages."""
    python = place / "env" / "bin" / "python"
    if not python.exists():
        place.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(place / "env")], place)
        _run([str(python), "-m", "pip", "install", "-q", *packages], place)
    return python


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _run(command: list[str], place: Path) -> None:
    try:
        subprocess.run(
            command, cwd=place, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        raise NotInstalled(
            f"{' '.join(command[:3])} failed: {(error.stderr or error.stdout).strip()[-300:]}"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{' '.join(command[:3])} failed: {error}") from error
