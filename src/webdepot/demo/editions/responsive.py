"""2016: HTML5 that fits the screen, pictures in two sizes by `srcset`, a cookie notice, linked data."""

from collections.abc import Iterator
from datetime import UTC, datetime

from webdepot.demo import brochure, pictures, render, town_plan
from webdepot.demo.render import Look
from webdepot.demo.resource import MAP_HOST, Edition, Resource
from webdepot.demo.texts import SitePage

LOOK = Look(folder="2016", extra={"places": town_plan.PLACES})
_SINCE = datetime(2016, 8, 22, 15, tzinfo=UTC)
_PHOTOGRAPHS = ("brug", "toren", "weefgetouw", "damast", "lantaarn", "vlas", "hoogwater")
_WIDTHS_QUALITIES = ((480, 72), (1200, 66))


def build(edition: Edition) -> Iterator[Resource]:
    """Every resource. Missing on purpose: the picture `klosjes` in both sizes and the page for the press."""
    yield from render.html_pages(edition, LOOK)
    yield render.static(LOOK, "museum.css", "/css/museum.css", "text/css; charset=utf-8", _SINCE)
    yield render.static(LOOK, "museum.js", "/js/museum.js", "application/javascript; charset=utf-8", _SINCE)
    yield render.static(LOOK, "merk.svg", "/img/merk.svg", "image/svg+xml", _SINCE)
    yield render.robots(edition, sitemap=True)
    yield render.sitemap(edition)
    yield render.feed(edition)
    yield render.redirect(edition, "/openingstijden", "/bezoek.html")
    yield Resource(path="/folder.pdf", type="application/pdf", changed=_SINCE, body=_folder())
    yield Resource(path="/favicon.ico", type="image/x-icon", changed=_SINCE, body=pictures.favicon())
    for name in _PHOTOGRAPHS:
        for width, quality in _WIDTHS_QUALITIES:
            body = pictures.jpeg(name, width, quality)
            yield Resource(path=f"/img/{name}-{width}.jpg", type="image/jpeg", changed=_SINCE, body=body)
    yield from _map(edition)


def _map(edition: Edition) -> Iterator[Resource]:
    page = SitePage(path="/", language="nl", title="Veldwijk in 1832", blocks=())
    body = render.page_bytes(page, edition, LOOK, template="map.html")
    yield Resource(path="/", host=MAP_HOST, type="text/html; charset=utf-8", changed=_SINCE, body=body)
    yield Resource(
        path="/veldwijk-1832.svg", host=MAP_HOST, type="image/svg+xml", changed=_SINCE, body=town_plan.svg()
    )


def _folder() -> bytes:
    lines = [
        "Weer open! Twee jaar verbouwd, een lift, een textielzaal, een café.",
        "",
        "Neem plaats aan het weefgetouw en neem je lap mee naar huis.",
        "Setzen Sie sich an den Webstuhl.  Sit down at the loom.",
        "",
        "Elke dag behalve maandag 10-17 uur, donderdag tot 21 uur.",
        "Volwassenen € 7,50. Tot en met 18 jaar gratis.",
        "",
        "De grensroute nu met app: een stem bij elke steen.",
    ]
    return brochure.pdf("Kom weven", lines, picture="weefgetouw", year="2016")
