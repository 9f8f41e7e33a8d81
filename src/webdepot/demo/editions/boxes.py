"""2009: boxes with rounded corners, XHTML, a slide show, a feed, and a town plan on a separate host."""

from collections.abc import Iterator
from datetime import UTC, datetime

from webdepot.demo import brochure, pictures, render, town_plan
from webdepot.demo.render import Look
from webdepot.demo.resource import MAP_HOST, Edition, Resource
from webdepot.demo.texts import SitePage

LOOK = Look(folder="2009", extra={"places": town_plan.PLACES})
_SINCE = datetime(2009, 2, 1, 12, tzinfo=UTC)
_PHOTOGRAPHS = ("brug", "toren", "weefgetouw", "damast", "lantaarn", "vlas", "hoogwater")


def build(edition: Edition) -> Iterator[Resource]:
    """Every resource. Missing on purpose: the picture `klosjes.jpg` and the page of the bus lines."""
    yield from render.html_pages(edition, LOOK)
    yield render.static(LOOK, "scherm.css", "/css/scherm.css", "text/css", _SINCE)
    yield render.static(LOOK, "afdruk.css", "/css/afdruk.css", "text/css", _SINCE)
    yield render.static(LOOK, "diashow.js", "/js/diashow.js", "application/x-javascript", _SINCE)
    yield render.robots(edition, sitemap=True)
    yield render.sitemap(edition)
    yield render.feed(edition)
    yield render.redirect(edition, "/openingstijden", "/bezoek.html", status=302)
    yield Resource(path="/folder.pdf", type="application/pdf", changed=_SINCE, body=_folder())
    yield Resource(path="/favicon.ico", type="image/x-icon", changed=_SINCE, body=pictures.favicon())
    yield Resource(path="/images/kop.png", type="image/png", changed=_SINCE, body=pictures.head_png(120))
    yield Resource(path="/images/feed.png", type="image/png", changed=_SINCE, body=pictures.feed_png())
    for name in _PHOTOGRAPHS:
        yield Resource(
            path=f"/images/{name}.jpg", type="image/jpeg", changed=_SINCE, body=pictures.jpeg(name, 460, 65)
        )
    yield from _map(edition)


def _map(edition: Edition) -> Iterator[Resource]:
    page = SitePage(path="/", language="nl", title="Veldwijk in 1832", blocks=())
    body = render.page_bytes(page, edition, LOOK, template="map.html")
    yield Resource(path="/", host=MAP_HOST, type="text/html; charset=utf-8", changed=_SINCE, body=body)
    for row in range(2):
        for column in range(2):
            tile = town_plan.tile_png(column, row)
            yield Resource(
                path=f"/tegels/{column}-{row}.png", host=MAP_HOST, type="image/png", changed=_SINCE, body=tile
            )


def _folder() -> bytes:
    lines = [
        "Van stengel tot draad: kom naar de Veldwijkse vlasweek, 20 tot 28 juni.",
        "",
        "Nieuw: de grensroute. Elf kilometer, negen grensstenen, twee landen.",
        "Neu: die Grenzroute auf dem Weg der Schmuggler.",
        "",
        "Open dinsdag t/m zondag van 11 tot 17 uur. Volwassenen € 4,00.",
        "Gezinnen € 9,00. Vrienden van het museum gratis.",
        "",
        "Luister ook naar onze podcast.",
    ]
    return brochure.pdf("Linnen, water, grens", lines, picture="vlas", year="2009")
