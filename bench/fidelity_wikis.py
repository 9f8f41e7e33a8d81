"""Further wikis: An Otter Wiki from PyPI, whose pages have histories and sources; ikiwiki from Debian's packages, which
writes files; and TiddlyWiki from npm, which is one file.
"""

import json
import shutil
from pathlib import Path

from bench.fidelity_servers import GOODS, PORTS
from bench.fidelity_sites import SQUARE, Site
from bench.fidelity_software import SHIPS, NotInstalled, _npm, _pip, _run, _write

OTTERWIKI = ("otterwiki==2.26.1",)
DEBIAN = (
    "ikiwiki",
    "libcgi-pm-perl",
    "libhtml-parser-perl",
    "libhtml-scrubber-perl",
    "libhtml-tagset-perl",
    "libhtml-template-perl",
    "libmarkdown2",
    "libtext-markdown-discount-perl",
    "liburi-perl",
    "libyaml-libyaml-perl",
)
ARTICLES = [f"{port}-{goods}" for port in PORTS for goods in GOODS[:2]]


def build_otterwiki(kept: Path) -> Site:
    """A wiki whose pages are files of a git repository: histories, differences, blame, sources, attachments."""
    if not shutil.which("git"):
        raise NotInstalled("git is not installed")
    place = kept / "otterwiki"
    python = _pip(place, OTTERWIKI)
    names = [name.lower() for name in ARTICLES]
    repository = place / "repository"
    if not (place / "filled").exists():
        shutil.rmtree(repository, ignore_errors=True)
        _run(["git", "init", "-q", str(repository)], place)
        for version in ("A first version.", "See the next ship."):
            links = "".join(f"- [[{name.title()}]]\n" for name in names)
            pages = {"home.md": f"# Ships\n\n{version}\n\n{links}"}
            for number, name in enumerate(names):
                pages[f"{name}.md"] = (
                    f"# {name.title()}\n\n{version} [[{names[number - 1].title()}]]\n\n| tons |\n|---|\n| {number}00 |\n"
                )
            _write(repository, pages)
            _run(["git", "add", "."], repository)
            author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
            _run(["git", *author, "commit", "-q", "-m", version, "--date=2025-05-01T10:00:00Z"], repository)
        (place / "filled").touch()
    _write(place, {"serve.py": OTTERWIKI_SERVE})
    content = ("/", *(f"/{name.title()}" for name in names))
    command = (str(python), str(place / "serve.py"), "{port}", str(place))
    rejects = "/(history|blame|source|diff|create|edit|attachments|rename|delete|login|register|lost_password|commit|revert)(/|$|[?])"
    return Site(name="Otter Wiki", pages=content[::4], command=command, content=content, wget_rejects=rejects)


OTTERWIKI_SERVE = """
import os, sys
port, place = int(sys.argv[1]), sys.argv[2]
os.environ.update(REPOSITORY=place + '/repository', SQLALCHEMY_DATABASE_URI='sqlite:///' + place + '/wiki.db',
                  SECRET_KEY='harbour-master-1', SITE_NAME='Ships', READ_ACCESS='ANONYMOUS', WRITE_ACCESS='APPROVED')
from otterwiki.server import app
import otterwiki.views
app.run(host='127.0.0.1', port=port, threaded=True)
"""


def build_ikiwiki(kept: Path) -> Site:
    """A wiki and a blog in files: tags, feeds, backlinks. Debian's packages are unpacked, not installed."""
    for needed in ("perl", "apt-get", "dpkg-deb"):
        if not shutil.which(needed):
            raise NotInstalled(f"{needed} is not installed")
    place = kept / "ikiwiki"
    root = place / "root"
    if not (root / "usr/bin/ikiwiki").exists():
        packages = place / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "-q", "download", *DEBIAN], packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(root)], place)
    names = [name.lower() for name in ARTICLES]
    _write(
        place,
        {
            "source/index.mdwn": "# Ships\n\n"
            + "".join(f"* [[{name}]]\n" for name in names)
            + "\n[[blog]]\n",
            "source/blog.mdwn": '[[!inline pages="posts/* and !*/Discussion" show=5 archive=no]]\n',
            "source/ship.svg": SQUARE.format("khaki"),
            **{
                f"source/{name}.mdwn": f'<img src="../ship.svg" alt="">\n\nIt sails after [[{names[at - 1]}]].\n\n[[!tag port]]\n'
                for at, name in enumerate(names)
            },
            **{
                f"source/posts/load-{at}.mdwn": f'[[!meta title="Load {at}"]] [[!meta date="2025-05-{at + 1:02} 10:00 UTC"]]\n\n'
                f"It carried {at} loads.\n\n[[!tag {GOODS[at % 3]}]]\n"
                for at in range(12)
            },
        },
    )
    perl, libraries = root / "usr/share/perl5", root / "usr/lib/x86_64-linux-gnu"
    environment = [f"PERL5LIB={perl}:{libraries / 'perl5/5.36'}", f"LD_LIBRARY_PATH={libraries}"]
    options = [
        "--rebuild",
        "--rss",
        "--atom",
        "--allowrss",
        "--plugin=tag",
        "--set=tagbase=tags",
        "--set=tag_autocreate=1",
    ]
    folders = [
        f"--templatedir={root / 'usr/share/ikiwiki/templates'}",
        f"--underlaydir={root / 'usr/share/ikiwiki/basewiki'}",
    ]
    shutil.rmtree(place / "source/.ikiwiki", ignore_errors=True)
    shutil.rmtree(place / "site", ignore_errors=True)
    command = ["env", *environment, "perl", str(root / "usr/bin/ikiwiki"), *options, *folders]
    _run(
        [
            *command,
            "--set",
            f"libdir={root / 'usr/share/ikiwiki'}",
            "source",
            "site",
            "--url=http://127.0.0.1",
        ],
        place,
    )
    articles, posts = [f"/{name}/" for name in names], [f"/posts/load-{at}/" for at in range(12)]
    pages = ("/", *articles[::5], "/blog/", *posts[::5], "/tags/port/")
    return Site(name="ikiwiki", pages=pages, folder=place / "site", content=("/", *articles, *posts))


def build_tiddlywiki(kept: Path) -> Site:
    """A wiki in one file, whose articles are routes behind `#`."""
    place = _npm(kept, "tiddlywiki")
    names = [name.title() for name in SHIPS]
    tiddlers = {
        f"wiki/tiddlers/{name}.tid": f"title: {name}\ntags: Ship\n\nIt carries {len(name)}00 tons. See [[{names[at - 1]}]].\n"
        for at, name in enumerate(names)
    }
    _write(
        place,
        {
            "wiki/tiddlywiki.info": json.dumps(
                {
                    "plugins": [],
                    "themes": ["tiddlywiki/vanilla", "tiddlywiki/snowwhite"],
                    "build": {"index": ["--render", "$:/core/save/all", "index.html", "text/plain"]},
                }
            ),
            "wiki/tiddlers/start.tid": "title: $:/DefaultTiddlers\n\nShips\n",
            "wiki/tiddlers/title.tid": "title: $:/SiteTitle\n\nHarbour\n",
            "wiki/tiddlers/Ships.tid": "title: Ships\n\n" + "".join(f"* [[{name}]]\n" for name in names),
            **tiddlers,
        },
    )
    _run(["node_modules/.bin/tiddlywiki", "wiki", "--build", "index"], place)
    return Site(
        name="TiddlyWiki", pages=("/", *(f"/#{name}" for name in names)), folder=place / "wiki/output"
    )
