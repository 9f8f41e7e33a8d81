"""Blogs of site generators from PyPI, with their usual themes: Pelican, and Nikola with a gallery; and Roundup, a tracker
of issues, which serves itself.
"""

import shutil
from pathlib import Path

from bench.fidelity_servers import GOODS, PORTS
from bench.fidelity_sites import Site
from bench.fidelity_software import _pip, _run, _write
from PIL import Image

PELICAN = ("pelican[markdown]==4.12.0",)
NIKOLA = ("nikola==8.3.3", "Markdown==3.11.3")
ROUNDUP = ("roundup==2.6.0",)
POSTS = 24


def build_pelican(kept: Path) -> Site:
    """A blog with two posts a month, categories, tags, authors and feeds."""
    place = kept / "pelican"
    python = _pip(place, PELICAN)
    posts = {
        f"content/ship-{number}.md": f"Title: The ship of load {number}\nDate: 2025-{number // 2 + 1:02}-1{number % 2} 10:00\nCategory: {GOODS[number % 3]}\n"
        f"Tags: port{number % 5}\nAuthor: Ann\n\n![ship](/images/ship.png)\n\nIt carried load {number}, as the ship before "
        f"[did]({{filename}}ship-{max(number - 1, 0)}.md).\n\n{'Wind and wave. ' * (number + 5)}\n"
        for number in range(POSTS)
    }  # fmt: skip
    _write(
        place,
        {
            "pelicanconf.py": PELICAN_SETTINGS,
            "content/pages/about.md": "Title: About\n\nA harbour.\n",
            **posts,
        },
    )
    _picture(place / "content/images/ship.png", "teal")
    _run([str(python), "-m", "pelican", "content", "-s", "pelicanconf.py", "-o", "output", "-d"], place)
    addresses = [f"/the-ship-of-load-{number}.html" for number in range(POSTS)]
    pages = (
        "/",
        *addresses[::5],
        "/pages/about.html",
        f"/category/{GOODS[0]}.html",
        "/tag/port2.html",
        "/index2.html",
    )
    content = ("/", "/pages/about.html", *addresses)
    return Site(name="Pelican", pages=pages, folder=place / "output", content=content)


PELICAN_SETTINGS = """
SITENAME = 'Ships'
SITEURL = ''
TIMEZONE = 'UTC'
DEFAULT_LANG = 'en'
DEFAULT_PAGINATION = 6
FEED_ALL_ATOM = 'feeds/all.atom.xml'
FEED_DOMAIN = ''
"""


def build_nikola(kept: Path) -> Site:
    """A blog with an archive, tags, and a gallery of pictures that open in a box above the page."""
    place = kept / "nikola"
    python = _pip(place, NIKOLA)
    blog = place / "blog"
    shutil.rmtree(blog, ignore_errors=True)
    _run([str(python.parent / "nikola"), "init", "-q", str(blog)], place)
    with (blog / "conf.py").open("a", encoding="utf-8") as settings:
        settings.write(NIKOLA_SETTINGS)
    posts = {
        f"posts/ship-{number}.md": f"<!--\n.. title: The ship of load {number}\n.. slug: ship-{number}\n.. date: 2025-{number // 2 + 1:02}-1{number % 2} 10:00:00 UTC\n"
        f".. tags: {GOODS[number % 3]}\n-->\n\nIt carried load {number}.\n\n<!-- TEASER_END -->\n\n{'Wind and wave. ' * (number + 5)}\n"
        for number in range(POSTS)
    }  # fmt: skip
    _write(blog, posts)
    for number in range(4):
        _picture(blog / f"galleries/harbour/quay-{number}.png", ("teal", "navy", "olive", "maroon")[number])
    _run([str(python.parent / "nikola"), "build", "-q"], blog)
    addresses = [f"/posts/ship-{number}/" for number in range(POSTS)]
    pages = (
        "/",
        *addresses[::5],
        "/archive.html",
        f"/categories/{GOODS[0]}/",
        "/galleries/harbour/",
        "/index-1.html",
    )
    content = ("/", "/galleries/harbour/", *addresses)
    return Site(name="Nikola", pages=pages, folder=blog / "output", content=content)


NIKOLA_SETTINGS = """
BLOG_TITLE = 'Ships'
SITE_URL = 'http://127.0.0.1/'
URL_TYPE = 'rel_path'
INDEX_DISPLAY_POST_COUNT = 6
THEME = 'bootstrap4'  # without fonts of another host
COMMENT_SYSTEM = ''
NAVIGATION_LINKS = {DEFAULT_LANG: (('/archive.html', 'Archive'), ('/galleries/harbour/', 'Gallery'), ('/rss.xml', 'RSS'))}
TIMEZONE = 'UTC'
"""


def build_roundup(kept: Path) -> Site:
    """A tracker: lists of issues that can be sorted and filtered, with histories, forms and files."""
    place = kept / "roundup"
    python = _pip(place, ROUNDUP)
    tracker = place / "tracker"
    if not (tracker / "filled").exists():
        shutil.rmtree(tracker, ignore_errors=True)
        admin = [str(python.parent / "roundup-admin"), "-i", str(tracker)]
        settings = "tracker_web=http://127.0.0.1:1/,mail_domain=localhost,mail_host=localhost"
        _run([*admin, "install", "classic", "sqlite", settings], place)
        _run([*admin, "initialise", "harbour-master-1"], place)
        _write(
            place,
            {
                "fill.py": ROUNDUP_FILL.replace(
                    "TITLES", repr([f"{port}: {GOODS[at % 5]} is late" for at, port in enumerate(PORTS * 2)])
                )
            },
        )
        _run([str(python), "fill.py", str(tracker)], place)
        (tracker / "filled").touch()
    issues = tuple(f"/issue{number}" for number in range(1, 2 * len(PORTS) + 1))
    _write(place, {"serve.py": ROUNDUP_SERVE})
    command = (str(python), str(place / "serve.py"), "{port}", str(tracker))
    return Site(name="Roundup", pages=("/", *issues[::4]), command=command, content=("/", *issues))


ROUNDUP_SERVE = """
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server
from roundup.cgi.wsgi_handler import RequestDispatcher
port, settings = int(sys.argv[1]), Path(sys.argv[2], 'config.ini')
lines = settings.read_text().splitlines()
settings.write_text('\\n'.join(f'web = http://127.0.0.1:{port}/' if line.startswith('web = ') else line for line in lines))
class Server(ThreadingMixIn, WSGIServer): daemon_threads = True
make_server('127.0.0.1', port, RequestDispatcher(sys.argv[2]), Server).serve_forever()
"""
ROUNDUP_FILL = """
import sqlite3
import sys
from roundup import instance, date
db = instance.open(sys.argv[1]).open('admin')
for title in TITLES:
    message = db.msg.create(content='It is said that ' + title, author='1', date=date.Date('2025-05-01'), summary=title)
    issue = db.issue.create(title=title, messages=[message], status='1', priority='2')
    db.issue.set(issue, title=title + '.')
db.commit()
db.close()
# Lists say how long ago an issue was changed, in minutes on its first day.
with sqlite3.connect(sys.argv[1] + '/db/db') as rows:
    rows.execute("UPDATE _issue SET _activity = '20250501000000.000', _creation = '20250501000000.000'")
"""


def _picture(path: Path, colour: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (600, 300), colour).save(path)
