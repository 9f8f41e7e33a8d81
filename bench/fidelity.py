"""Do archived pages look and work like the live ones?

    python -m bench.fidelity [--quick] [--software FOLDER] [--json PATH] [SITE...]

Sites made with real software, installed from npm, PyPI and Debian, and two of our own, are served on loopback
and harvested: by Webdepot plain (`--browser never`), in the browser (`--browser always`) and as it does by default
(`--browser auto`: plain, and in the browser what needs it), and by `wget --mirror -p`, whose WARC is replayed by pywb. Every page of a site is opened live and replayed in Chromium:

    text      similarity of the sequences of visible words
    picture   share of agreeing pixels in the top 900 pixels, best of a shift by -1, 0 and +1
    links     links of the site that show by click what they show live; each destination is clicked once
    missing   parts of pages answered with 404 in replay, but not live
    left      requests for anything but the replay server
    outside   addresses of other hosts that Webdepot's harvest asked for
    asked     requests of Webdepot for each page with content that it has, without parts of pages; and how many
              of the pages with content it has (wikis and blogs)
    cpu       seconds of CPU of Webdepot itself, and of its children (Chromium, and what examines formats), and
              how many pages were opened in the browser

A page that is not in the archive (404) has a score of 0 in both: a white page with a message would look
similar by chance.
"""

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import mean
from urllib.parse import urlsplit

from bench import fidelity_archives as archives
from bench import fidelity_blogs as blogs
from bench import fidelity_documents as documents
from bench import fidelity_frameworks as frameworks
from bench import fidelity_manuals as manuals
from bench import fidelity_npm as npm
from bench import fidelity_servers as servers
from bench import fidelity_sites as sites
from bench import fidelity_software as software
from bench import fidelity_viewers as viewers
from bench import fidelity_wikis as wikis
from bench.fidelity_views import GOOD, LivePage, LiveSiteFailed, PageScore, Viewer, compare, view_live

ROOT = Path(__file__).parent.parent
PYWB = ROOT / ".pywb" / "bin"
PEER = "wget + pywb"
BROWSER = {"plain": "never", "browser": "always", "auto": "auto"}
"""Webdepot's sides of the comparison, and the value of `--browser` for each."""
SITES: dict[str, Callable[[Path], sites.Site]] = {
    "frameset": sites.write_frames,
    "encodings": sites.write_encodings,
    "react": software.build_react,
    "vitepress": software.build_vitepress,
    "sphinx": software.build_sphinx,
    "mkdocs": software.build_mkdocs,
    "widgets": software.build_widgets,
    "vue": npm.build_vue,
    "vue-hash": npm.build_vue_hash,
    "docusaurus": npm.build_docusaurus,
    "hexo": npm.build_hexo,
    "next": frameworks.build_next,
    "nuxt": frameworks.build_nuxt,
    "sveltekit": frameworks.build_sveltekit,
    "astro": frameworks.build_astro,
    "angular": frameworks.build_angular,
    "storybook": frameworks.build_storybook,
    "viewers": viewers.build_viewers,
    "docsify": documents.build_docsify,
    "jupyter-book": documents.build_jupyter_book,
    "pdoc": documents.build_pdoc,
    "svelte": documents.build_svelte,
    "otterwiki": wikis.build_otterwiki,
    "ikiwiki": wikis.build_ikiwiki,
    "tiddlywiki": wikis.build_tiddlywiki,
    "pelican": blogs.build_pelican,
    "nikola": blogs.build_nikola,
    "roundup": blogs.build_roundup,
    "manuals": manuals.build_manuals,
    "trac": manuals.build_trac,
    "dokuwiki": software.build_dokuwiki,
    "mediawiki": servers.build_mediawiki,
    "wordpress": servers.build_wordpress,
}
OURS = ("frameset", "encodings")
QUICK = (*OURS, "react")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One site in one archive."""

    site: str
    side: str
    pages: list[PageScore]
    missing: list[str]
    left: list[str]
    outside: list[str] = field(default_factory=list)
    failure: str = ""
    asked: int = 0
    """Requests for pages, without their parts; only for Webdepot."""
    content: tuple[int, int] = (0, 0)
    """How many pages with content were kept, and how many there are."""
    cpu: archives.CpuTime | None = None
    """Only for Webdepot."""

    @property
    def text(self) -> float:
        return mean(page.text for page in self.pages) if self.pages else 0.0

    @property
    def picture(self) -> float:
        return mean(page.picture for page in self.pages) if self.pages else 0.0

    @property
    def links(self) -> tuple[int, int]:
        """Links that work, and links tried."""
        return sum(page.links_working for page in self.pages), sum(page.links_clicked for page in self.pages)


def main() -> None:
    options = _arguments()
    options.software.mkdir(parents=True, exist_ok=True)
    if options.install:
        _install(options.sites or [name for name in SITES if name not in OURS], options.software)
        return
    for needed in ("chromium", "wget"):
        if not shutil.which(needed):
            sys.exit(f"This benchmark needs {needed}: apt-get install {needed}")
    if options.pywb is None:
        print("pywb is not installed (make install-test): only Webdepot is measured.", file=sys.stderr)
    rows: list[Row] = []
    skipped: dict[str, str] = {}
    print(HEADING, flush=True)
    for name in options.sites or (QUICK if options.quick else SITES):
        with _folder_for(name, options.keep) as folder:
            try:
                site = SITES[name](folder / "site" if name in OURS else options.software)
            except software.NotInstalled as error:
                skipped[name] = str(error)
                continue
            try:
                for row in _measured(site, folder, options.pywb, options.side or [*BROWSER, PEER]):
                    rows.append(row)
                    print(_line(row), flush=True)
            except LiveSiteFailed as error:
                sys.exit(f"The live site {site.name} does not work: {error}")
    _print_results(rows, skipped)
    if options.json:
        facts = {"machine": platform.machine(), "python": platform.python_version(), "skipped": skipped}
        options.json.write_text(
            json.dumps({**facts, "rows": [_as_json(row) for row in rows]}, indent=1) + "\n"
        )
    if any(row.failure or row.left or row.outside for row in rows if row.side != PEER):
        sys.exit("A harvest failed, or it or a replayed page made requests elsewhere.")


def _install(names: list[str], folder: Path) -> None:
    for name in names:
        try:
            SITES[name](folder)
        except software.NotInstalled as error:
            print(f"{name} was left out: {error}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sites", nargs="*", metavar="SITE", help=f"which: {', '.join(SITES)}; default: all")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--install", action="store_true", help="only install the software of the sites")
    parser.add_argument(
        "--software", type=Path, default=ROOT / "bench/results/software", help="folder for installed software"
    )
    parser.add_argument(
        "--pywb",
        type=Path,
        default=PYWB if PYWB.exists() else None,
        help="folder with pywb's programs `wayback` and `wb-manager`",
    )
    parser.add_argument(
        "--keep", type=Path, help=f"keep the harvests here, and both pictures of each page below {GOOD}"
    )
    parser.add_argument(
        "--side", action="append", choices=[*BROWSER, PEER], help="which archives; default: all"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    if unknown := set(options.sites) - set(SITES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}. Known: {', '.join(SITES)}")
    options.software = options.software.resolve()
    return options


@contextmanager
def _folder_for(site: str, keep: Path | None) -> Iterator[Path]:
    """A folder for the harvests of a site, which is removed unless it is to be kept."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="webdepot-bench-") as folder:
            yield Path(folder)
    else:
        shutil.rmtree(keep / site, ignore_errors=True)
        (keep / site).mkdir(parents=True)
        yield (keep / site).resolve()


def _measured(site: sites.Site, folder: Path, pywb: Path | None, sides: list[str]) -> Iterator[Row]:
    """Record the live site, harvest it in each of these ways, then compare each archive with it."""
    harvests: dict[str, Callable[[str], None]] = {
        side: partial(archives.harvest_with_webdepot, folder / side, site, browser=browser)
        for side, browser in BROWSER.items()
        if side in sides
    }
    replays: dict[str, Callable[[], AbstractContextManager[archives.Replay]]] = {
        side: partial(archives.webdepot_served, folder / side) for side in harvests
    }
    if pywb and PEER in sides:
        wget = folder / "wget"
        harvests[PEER] = lambda base: archives.harvest_with_wget(wget, site, base, pywb)
        replays[PEER] = lambda: archives.pywb_served(wget, pywb)
    failures: dict[str, str] = {}
    outside: dict[str, list[str]] = {}
    with archives.serve(site) as base:
        with Viewer.open((urlsplit(base).port or 80,)) as viewer:
            for path in site.pages if site.command else ():  # a wiki completes a page when it is first seen
                with viewer.page(base + path) as page:
                    viewer.settled_words(page)
            live = view_live(viewer, base, site.pages)
            absent = viewer.missing
        for side, harvest in harvests.items():
            try:
                harvest(base)
            except archives.HarvestFailed as error:
                failures[side] = str(error)
            outside[side] = archives.asked_elsewhere(folder / side, base)
    for side, replay in replays.items():
        if side in failures:
            yield Row(site=site.name, side=side, pages=[], missing=[], left=[], failure=failures[side])
        else:
            with replay() as served:
                row = _viewed(site, side, live, served, absent, folder)
                asked, kept = (0, 0) if side == PEER else archives.count_page_requests(folder / side, site)
                content = (kept, len(site.content))
                cpu = archives.cpu_time(folder / side)
                yield replace(row, outside=outside[side], asked=asked, content=content, cpu=cpu)


def _viewed(
    site: sites.Site, side: str, live: list[LivePage], served: archives.Replay, absent: set[str], folder: Path
) -> Row:
    with Viewer.open(served.ports, served) as viewer:
        pages = [compare(viewer, page, folder / f"{number}-{side}") for number, page in enumerate(live)]
        return Row(
            site=site.name,
            side=side,
            pages=pages,
            missing=sorted(viewer.missing - absent - {page.url for page in live}),  # pages have scores
            left=list(viewer.left),
        )


HEADING = f"{'site':10} {'archive':12} {'pages':>5} {'text':>7} {'picture':>8} {'links':>8} {'missing':>8} {'left':>5} {'outside':>8} {'asked':>14} {'cpu':>16}"


def _line(row: Row) -> str:
    if row.failure:
        return f"{row.site:10} {row.side:12} the harvest failed: {row.failure}"
    links = "{}/{}".format(*row.links)
    kept, there = row.content
    asked = f"{row.asked / kept:.2f} ({kept}/{there})" if row.asked and kept else ""
    cpu = f"{row.cpu.own_s:.1f}+{row.cpu.children_s:.1f}/{row.cpu.opened}" if row.cpu else ""
    return f"{row.site:10} {row.side:12} {len(row.pages):>5} {row.text:>7.3f} {row.picture:>8.3f} {links:>8} {len(row.missing):>8} {len(row.left):>5} {len(row.outside):>8} {asked:>14} {cpu:>16}"


def _print_results(rows: list[Row], skipped: dict[str, str]) -> None:
    for name, reason in skipped.items():
        print(f"{name} was left out: {reason}")
    for row in rows:
        for page in row.pages:
            if min(page.text, page.picture) < GOOD or page.failed_links:
                path = page.url.removeprefix("http://").partition("/")[2]
                links = f", links that fail: {', '.join(page.failed_links)}" if page.failed_links else ""
                print(
                    f"{row.site}, {row.side}: /{path} text {page.text:.3f}, picture {page.picture:.3f}{links}"
                )
        for what, addresses in (("missing", row.missing), ("left", row.left), ("outside", row.outside)):
            for address in addresses[:5]:
                print(f"{row.site}, {row.side}: {what}: {address}")
    for side in dict.fromkeys(row.side for row in rows):
        pages = [page for row in rows if row.side == side for page in row.pages]
        if pages:
            good = sum(min(page.text, page.picture) >= GOOD for page in pages)
            print(
                f"{side}: {good} of {len(pages)} pages at least {GOOD}; text {mean(page.text for page in pages):.3f}, "
                f"picture {mean(page.picture for page in pages):.3f}"
            )


def _as_json(row: Row) -> dict[str, object]:
    working, clicked = row.links
    return {
        **asdict(row),
        "text": row.text,
        "picture": row.picture,
        "links_working": working,
        "links_clicked": clicked,
    }


if __name__ == "__main__":
    main()
