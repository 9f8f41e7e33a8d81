"""Pages from texts and templates: each look has a template folder, the texts are the same.

Steps: choose the pages and news of the edition, add a news list for each language, render each with
`page.html` of the look, and build feed, sitemap and robots.txt from the same list, so that they always match
the site.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import escape

from webdepot.demo import texts
from webdepot.demo.resource import HOST, Edition, Resource
from webdepot.demo.texts import NEWS_FOLDERS, NEWS_TITLES, SitePage
from webdepot.times import to_http, to_iso

_HOMES = {"nl": "/", "de": "/de/", "en": "/en/"}
_NAMES = {"nl": "Nederlands", "de": "Deutsch", "en": "English"}
_MISSING = {
    "nl": "Deze pagina is er niet (meer)",
    "de": "Diese Seite gibt es nicht",
    "en": "This page does not exist",
}
CLOSED_FOLDER = "/intern/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The look of the site in one period: its template folder, and the values templates need besides the
    texts.
    """

    folder: str
    encoding: str = "utf-8"
    doctype: str = "text/html"
    extra: dict[str, Any] = field(default_factory=dict)


def html_pages(edition: Edition, look: Look) -> Iterator[Resource]:
    """Every HTML page of the edition."""
    for page in site_pages(edition):
        yield Resource(
            path=page.path,
            type=f"{look.doctype}; charset={look.encoding}",
            changed=_changed(page, edition),
            body=page_bytes(page, edition, look),
        )


def site_pages(edition: Edition) -> list[SitePage]:
    """Pages, a list of news for each language, and the news items."""
    items = texts.news(edition.name)
    lists = [
        SitePage(
            path=f"{NEWS_FOLDERS[code]}.html",
            language=code,
            title=NEWS_TITLES[code],
            menu=NEWS_TITLES[code],
            blocks=(),
        )
        for code in texts.LANGUAGES
    ]
    return [*texts.pages(edition.name), *lists, *items]


def page_bytes(page: SitePage, edition: Edition, look: Look, *, template: str = "page.html") -> bytes:
    """One page, rendered and encoded; characters that Latin-1 does not have become character references."""
    items = [item for item in texts.news(edition.name) if item.language == page.language]
    html = (
        _environment(look.folder)
        .get_template(template)
        .render(
            edition=edition,
            page=page,
            home=_HOMES[page.language],
            menu=[entry for entry in site_pages(edition) if entry.menu and entry.language == page.language],
            news=items,
            news_path=f"{NEWS_FOLDERS[page.language]}.html",
            news_title=NEWS_TITLES[page.language],
            languages=[(code, _NAMES[code], _HOMES[code]) for code in texts.LANGUAGES],
            **look.extra,
        )
    )
    return html.encode(look.encoding, "xmlcharrefreplace")


def missing_page(edition: Edition, look: Look) -> Resource:
    """The site's own page for missing pages, with status 404."""
    page = SitePage(
        path="/404", language="nl", title=_MISSING["nl"], blocks=texts.blocks("\n\n".join(_MISSING.values()))
    )
    return Resource(
        path="/404",
        type=f"text/html; charset={look.encoding}",
        changed=edition.date,
        status=404,
        body=page_bytes(page, edition, look),
    )


def static(look: Look, name: str, path: str, kind: str, since: datetime) -> Resource:
    """An unchanged file from the folder of the look: style sheet, script, drawing."""
    source, _, _ = _loader(look.folder).get_source(_environment(look.folder), name)
    return Resource(path=path, type=kind, changed=since, body=source.encode())


def robots(edition: Edition, *, sitemap: bool) -> Resource:
    lines = ["# Museum Veldwijk", "User-agent: *", f"Disallow: {CLOSED_FOLDER}"]
    if sitemap:
        lines += ["", f"Sitemap: http://{HOST}/sitemap.xml"]
    return Resource(
        path="/robots.txt",
        type="text/plain; charset=utf-8",
        changed=edition.date,
        body="\n".join([*lines, ""]).encode(),
    )


def sitemap(edition: Edition, extra: tuple[str, ...] = ()) -> Resource:
    """The sitemap (sitemaps.org 0.9), without the folder that robots.txt disallows."""
    paths = [page.path for page in site_pages(edition) if not page.path.startswith(CLOSED_FOLDER)]
    entries = "\n".join(
        f"  <url><loc>http://{HOST}{path}</loc><lastmod>{to_iso(edition.date)[:10]}</lastmod></url>"
        for path in [*paths, *extra]
    )
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}\n</urlset>\n'
    return Resource(path="/sitemap.xml", type="application/xml", changed=edition.date, body=body.encode())


def feed(edition: Edition) -> Resource:
    """The RSS 2.0 feed of the Dutch news."""
    items = [item for item in texts.news(edition.name) if item.language == "nl"]
    entries = "\n".join(
        f"  "
        f"<item><title>{escape(item.title)}</title><link>http://{HOST}{item.path}</link><guid>http://{HOST}{item.path}</guid>"
        f"<pubDate>{to_http(_day(item, edition))}</pubDate>"
        f"<description>{escape(item.lead)}</description></item>"
        for item in items
    )
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>\n  <title>Museum Veldwijk: '
        "nieuws</title>\n"
        f"  <link>http://{HOST}/</link><description>Nieuws uit de "
        "Linnenwaag</description><language>nl</language>\n"
        f"{entries}\n</channel></rss>\n"
    )
    return Resource(
        path="/nieuws.xml",
        type="application/rss+xml; charset=utf-8",
        changed=edition.date,
        body=body.encode(),
    )


def redirect(edition: Edition, path: str, location: str, *, host: str = HOST, status: int = 301) -> Resource:
    body = f'<html><head><title>Moved</title></head><body><a href="{location}">{location}</a></body></html>\n'
    return Resource(
        path=path,
        type="text/html",
        changed=edition.date,
        host=host,
        status=status,
        location=location,
        body=body.encode(),
    )


def _changed(page: SitePage, edition: Edition) -> datetime:
    return _day(page, edition) if page.date else edition.date - timedelta(days=9)


def _day(page: SitePage, edition: Edition) -> datetime:
    if page.date is None:
        return edition.date
    return datetime(page.date.year, page.date.month, page.date.day, 8, tzinfo=edition.date.tzinfo)


def _loader(folder: str) -> PackageLoader:
    return PackageLoader("webdepot.demo", f"templates/{folder}")


@cache
def _environment(folder: str) -> Environment:
    return Environment(
        loader=_loader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
