"""2003 and 2004: tables, FONT tags, GIFs, a frameset for the tour, Latin-1."""

from collections.abc import Iterator
from datetime import UTC, datetime

from webdepot.demo import brochure, pictures, render
from webdepot.demo.render import Look
from webdepot.demo.resource import Edition, Resource
from webdepot.demo.texts import SitePage

LOOK = Look(folder="2003", encoding="iso-8859-1")
_SINCE = datetime(2003, 1, 10, 19, 30, tzinfo=UTC)
_PHOTOGRAPHS = ("brug", "toren", "weefgetouw", "damast", "lantaarn", "vlas", "hoogwater")


def build(edition: Edition) -> Iterator[Resource]:
    """Every resource. Missing on purpose: the picture `klosjes.jpg` and the page `zaal3.html`."""
    yield from render.html_pages(edition, LOOK)
    yield from _tour(edition)
    yield render.static(LOOK, "stijl.css", "/stijl.css", "text/css", _SINCE)
    yield render.robots(edition, sitemap=False)
    yield Resource(path="/folder.pdf", type="application/pdf", changed=_SINCE, body=_folder(edition))
    yield Resource(path="/favicon.ico", type="image/x-icon", changed=_SINCE, body=pictures.favicon())
    yield from _images(edition)


def _tour(edition: Edition) -> Iterator[Resource]:
    for path, template in (("/rondleiding/", "frameset.html"), ("/rondleiding/menu.html", "tour_menu.html")):
        page = SitePage(path=path, language="nl", title="Rondleiding door het museum", blocks=())
        body = render.page_bytes(page, edition, LOOK, template=template)
        yield Resource(path=path, type="text/html; charset=iso-8859-1", changed=_SINCE, body=body)


def _images(edition: Edition) -> Iterator[Resource]:
    visitors = 4712 if edition.name == "2003" else 11938
    gifs = {
        "kop": pictures.banner_gif("Museum Veldwijk"),
        "tegel": pictures.tile_gif(),
        "nieuw": pictures.new_gif(),
        "teller": pictures.counter_gif(visitors),
    }
    for name, body in gifs.items():
        yield Resource(
            path=f"/beeld/{name}.gif",
            type="image/gif",
            changed=edition.date if name == "teller" else _SINCE,
            body=body,
        )
    for name in _PHOTOGRAPHS:
        yield Resource(
            path=f"/beeld/{name}.jpg", type="image/jpeg", changed=_SINCE, body=pictures.jpeg(name, 300, 45)
        )


def _folder(edition: Edition) -> bytes:
    lines = [
        "Linnen, water en de grens: in de oude Linnenwaag aan de Lurze.",
        "",
        "Open dinsdag t/m vrijdag van 13 tot 17 uur, zondag van 14 tot 17 uur.",
        "Volwassenen € 2,50, kinderen € 1,00.",
        "",
        "Elke tweede zondag weeft de heer Oolbekkink op het getouw van 1780.",
        "Für unsere deutschen Gäste: Führungen nach Absprache.",
        "",
        "Linnenwaag 1, Veldwijk. Parkeren op het Bleekveld.",
    ]
    return brochure.pdf("Museum Veldwijk", lines, picture="brug", year="2003")
