"""Documentation whose pages are drawn or searched by scripts: Docsify from npm, Jupyter Book and pdoc from PyPI; and an
app without addresses in its HTML, made with Svelte and a router of its own.
"""

import json
import shutil
from pathlib import Path

from bench.fidelity_sites import SQUARE, Site
from bench.fidelity_software import SHIPS, _npm, _pip, _run, _write

NAMES = [name.lower() for name in SHIPS]
JUPYTER_BOOK = ("jupyter-book==1.0.4.post1",)
PDOC = ("pdoc==16.0.0",)


def build_docsify(kept: Path) -> Site:
    """Markdown that a script fetches and shows; all pages are routes behind `#`."""
    place = _npm(kept, "docsify")
    folder = place / "site"
    shutil.rmtree(folder, ignore_errors=True)
    package = place / "node_modules/docsify"
    shutil.copytree(package / "dist", folder / "docsify")
    _write(
        folder,
        {
            "index.html": DOCSIFY_PAGE,
            "README.md": "# Ships\n\nA guide to the harbour.\n\n"
            + "".join(f"- [{name}]({name}.md)\n" for name in NAMES),
            "_sidebar.md": "".join(f"- [{name.title()}]({name}.md)\n" for name in NAMES),
            "ship.svg": SQUARE.format("purple"),
            **{
                f"{name}.md": f"# {name.title()}\n\n![ship](ship.svg)\n\nIt carries {len(name)}00 tons.\n\n## Crew\n\nTen.\n"
                for name in NAMES
            },
        },
    )
    return Site(name="Docsify", pages=("/", *(f"/#/{name}" for name in NAMES)), folder=folder)


DOCSIFY_PAGE = """<!doctype html><html lang=en><head><meta charset=utf-8><title>Ships</title>
<link rel=stylesheet href=docsify/themes/core.min.css></head><body><div id=app></div>
<script>window.$docsify = {name: 'Ships', loadSidebar: true, subMaxLevel: 2}</script>
<script src=docsify/docsify.min.js></script><script src=docsify/plugins/search.min.js></script></body></html>"""


def build_jupyter_book(kept: Path) -> Site:
    """A book of Markdown with a search, a theme that can be changed, and folded parts."""
    place = kept / "jupyter-book"
    python = _pip(place, JUPYTER_BOOK)
    _write(
        place / "book",
        {
            "_config.yml": json.dumps(
                {"title": "Ships", "author": "Ann", "logo": "", "execute": {"execute_notebooks": "off"}}
            ),
            "_toc.yml": json.dumps(
                {"format": "jb-book", "root": "index", "chapters": [{"file": name} for name in NAMES]}
            ),
            "ship.svg": SQUARE.format("brown"),
            "index.md": "# Ships\n\nA guide to the harbour.\n",
            **{
                f"{name}.md": f"# {name.title()}\n\n![ship](ship.svg)\n\n```{{note}}\nKeep a look-out.\n```\n\n"
                f"```{{dropdown}} Cargo\n{len(name)}00 tons.\n```\n\n```python\nload('{name}')\n```\n"
                for name in NAMES
            },
        },
    )
    _run([str(python.parent / "jupyter-book"), "build", "--all", "book"], place)
    pages = ("/index.html", *(f"/{name}.html" for name in NAMES), "/search.html")
    return Site(name="Jupyter Book", pages=pages, folder=place / "book/_build/html")


def build_pdoc(kept: Path) -> Site:
    """The documentation of modules, with their source and a search whose index a script loads."""
    place = kept / "pdoc"
    python = _pip(place, PDOC)
    modules = {
        f"harbour/{name}.py": f'"""The {name.title()} of Emden."""\n\n\ndef load(tons: int = {len(name)}) -> int:\n'
        f'    """How much the `harbour.{NAMES[0]}` carries."""\n    return tons * 100\n'
        for name in NAMES
    }
    names = ", ".join(NAMES)
    _write(
        place,
        {"harbour/__init__.py": f'"""Ships of a harbour."""\n\n__all__ = {NAMES!r}\n# {names}\n', **modules},
    )
    _run([str(python), "-m", "pdoc", "-o", "site", "./harbour"], place)
    pages = ("/harbour.html", *(f"/harbour/{name}.html" for name in NAMES))
    return Site(name="pdoc", pages=pages, folder=place / "site")


def build_svelte(kept: Path) -> Site:
    """An app with history routing whose links are buttons and addresses that a script builds."""
    place = _npm(kept, "svelte")
    _write(
        place,
        {
            "index.html": "<!doctype html><meta charset=utf-8><title>Ships</title><link rel=stylesheet href=/ships.css>"
            "<div id=app></div><script type=module src=/main.js></script>",
            "vite.config.mjs": "import { svelte } from '@sveltejs/vite-plugin-svelte'\nexport default { plugins: [svelte()] }",
            "main.js": "import { mount } from 'svelte'\nimport App from './App.svelte'\nmount(App, { target: document.getElementById('app') })\n",
            "App.svelte": SVELTE_APP,
            "public/ships.css": "body {font: 18px sans-serif; margin: 2em} nav a {margin-right: 1em}",
            "public/ship.svg": SQUARE.format("tomato"),
            "public/data/ships.json": json.dumps(SHIPS),
        },
    )
    _run(["node_modules/.bin/vite", "build"], place)
    pages = ("/", *(f"/ship/{name}" for name in NAMES), f"/ship/{NAMES[0]}/crew")
    return Site(name="Svelte", pages=pages, folder=place / "dist", fallback="/index.html")


SVELTE_APP = """<script>
import page from 'page'
let ships = $state([]), name = $state(''), part = $state('')
fetch('/data/ships.json').then(answer => answer.json()).then(list => { ships = list.map(ship => ship.toLowerCase()) })
page('/', () => { name = ''; document.title = 'Ships' })
page('/ship/:name/:part?', ({ params }) => { name = params.name; part = params.part ?? ''; document.title = name })
page.start()
</script>
<nav><a href='/'>Ships</a></nav>
{#if !name}<h1>Ships</h1><ul>{#each ships as ship}<li><button onclick={() => page(`/ship/${ship}`)}>{ship}</button></li>{/each}</ul>
{:else}<h1>{name}</h1><img src='/ship.svg' alt=''><p>It carries {name.length}00 tons.</p>
<a href={`/ship/${name}/crew`}>Crew</a>{#if part}<p>Ten sailors and a cook</p>{/if}{/if}
"""
