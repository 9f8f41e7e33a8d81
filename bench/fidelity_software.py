"""Sites made with published software, which is installed and built here: React and VitePress from npm, Sphinx
from PyPI, DokuWiki from Debian. Installed software is kept in a folder, so that the next run is faster.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bench.fidelity_sites import SQUARE, Site

NPM = {
    "react": ("vite@6.4.6", "react@19.3.1", "react-dom@19.3.1", "react-router@7.18.5"),
    "vitepress": ("vitepress@1.6.4",),
}
SPHINX = ("sphinx==8.1.3", "furo==2024.8.6")
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
INSTALL_TIMEOUT_S = 600


class NotInstalled(Exception):
    """The software cannot be had here; the message says why."""


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
    python = place / "env" / "bin" / "python"
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(place / "env")], kept)
        _run([str(python), "-m", "pip", "install", "-q", *SPHINX], kept)
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


def build_dokuwiki(kept: Path) -> Site:
    """A wiki that php serves. Debian's packages are unpacked, not installed; paths in them are adapted."""
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
            "$conf['indexdelay'] = 0;\n$conf['license'] = '';\n$conf['updatecheck'] = 0;\n",
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
    return Site(name="DokuWiki", pages=pages, command=command)


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
        _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *NPM[name]], place)
    return place


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
