"""Large manuals from Debian's packages, of which a part is harvested, and Trac, a wiki with tickets."""

import shutil
from pathlib import Path

from bench.fidelity_servers import GOODS, PORTS
from bench.fidelity_sites import Site
from bench.fidelity_software import NotInstalled, _pip, _run, _write

DEBIAN = ("python3.11-doc", "postgresql-doc-15", "openjdk-17-doc", "libjs-jquery", "libjs-underscore")
TRAC = ("Trac==1.6", "setuptools<80")
PYTHON = "/python3.11/html"
POSTGRESQL = "/postgresql-doc-15/html"
JAVA = "/openjdk-17-jre-headless/api"


def build_manuals(kept: Path) -> Site:
    """The manuals of Python (Sphinx), PostgreSQL (DocBook) and the JDK (Javadoc): 11,800 pages, of which some are seeds."""
    for needed in ("apt-get", "dpkg-deb"):
        if not shutil.which(needed):
            raise NotInstalled(f"{needed} is not installed")
    root = kept / "manuals"
    folder = root / "files/usr/share/doc"
    if not (folder / "index.html").exists():
        shutil.rmtree(root, ignore_errors=True)
        packages = root / "packages"
        packages.mkdir(parents=True)
        _run(["apt-get", "-q", "download", *DEBIAN], packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(root / "files")], root)
        links = "".join(f"<li><a href='{path}/index.html'>{path}</a>" for path in (PYTHON, POSTGRESQL, JAVA))
        _write(
            folder, {"index.html": f"<!doctype html><title>Manuals</title><h1>Manuals</h1><ul>{links}</ul>"}
        )
    pages = (
        "/",
        *(
            f"{PYTHON}/{name}.html"
            for name in ("index", "tutorial/index", "tutorial/classes", "library/json", "search")
        ),
        *(f"{POSTGRESQL}/{name}.html" for name in ("index", "tutorial", "tutorial-sql", "sql-select")),
        f"{JAVA}/index.html",
        *(
            f"{JAVA}/java.sql/{name}.html"
            for name in ("module-summary", "java/sql/package-summary", "java/sql/Array")
        ),
    )
    return Site(name="manuals", pages=pages, folder=folder, limit_pages=20)


def build_trac(kept: Path) -> Site:
    """A wiki with tickets: each page has a history, differences, attachments and other formats."""
    place = kept / "trac"
    python = _pip(place, TRAC)
    environment = place / "project"
    names = [f"{port}{goods.title()}" for port in PORTS for goods in GOODS[:2]]
    if not (environment / "VERSION").exists():
        shutil.rmtree(environment, ignore_errors=True)
        admin = [str(python.parent / "trac-admin"), str(environment)]
        _run([*admin, "initenv", "Ships", "sqlite:db/trac.db"], place)
        _write(place, {"fill.py": TRAC_FILL.replace("NAMES", repr(names))})
        _run([str(python), "fill.py", str(environment)], place)
        # Not "3 minutes ago", which differs in each archive.
        _run([*admin, "config", "set", "trac", "default_dateinfo_format", "absolute"], place)
    pages = ("/wiki/WikiStart", *(f"/wiki/{name}" for name in names[::3]), "/wiki/TitleIndex")
    content = ("/wiki/WikiStart", *(f"/wiki/{name}" for name in names))
    server = str(python.parent / "tracd")
    command = (server, "-s", "--hostname", "127.0.0.1", "--port", "{port}", str(environment))
    return Site(name="Trac", pages=pages, command=command, content=content, wget_rejects=TRAC_REJECTS)


TRAC_FILL = """
import sys
from trac.env import Environment
from trac.wiki.model import WikiPage
env, names = Environment(sys.argv[1]), NAMES
def save(name, *texts):
    for text in texts:
        page = WikiPage(env, name)
        page.text = text
        page.save('master', 'as told in the harbour')
for name, in list(env.db_query('SELECT DISTINCT name FROM wiki')):  # Trac asks not to follow its own manual
    if name not in ('WikiStart', 'TitleIndex'):
        WikiPage(env, name).delete()
save('WikiStart', '= Ships =\\n' + ''.join(' * [wiki:%s]\\n' % name for name in names))
save('TitleIndex', '= All pages =\\n[[TitleIndex]]')
for number, name in enumerate(names):
    save(name, '= %s =\\nA first version.' % name,
         '= %s =\\nSee [wiki:%s] and WikiStart.\\n== Tides ==\\n||month||metres||\\n||May||%d||\\n' % (name, names[number - 1], number))
"""
TRAC_REJECTS = (
    "[?&](action|version|format|order|from|daysback|sort|group)=|/(timeline|query|search|attachment|login)"
)
