"""2024: script modules, a collection fetched as JSON, drawings in SVG, WebP beside JPEG, dark and light."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from webdepot.demo import brochure, pictures, render, town_plan
from webdepot.demo.render import Look
from webdepot.demo.resource import HOST, MAP_HOST, Edition, Resource
from webdepot.demo.texts import SitePage, blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    path: str
    title: str
    year: int
    kind: str
    number: str
    picture: str


_PIECES = (
    _Piece(
        path="/collectie/weefgetouw.html",
        title="Weefgetouw",
        year=1780,
        kind="werktuig",
        number="1931-0004",
        picture="weefgetouw",
    ),
    _Piece(
        path="/collectie/damast.html",
        title="Tafellaken (teruggegeven)",
        year=1743,
        kind="textiel",
        number="1943-0017",
        picture="damast",
    ),
    _Piece(
        path="/collectie/smokkeljas.html",
        title="Smokkeljas",
        year=1949,
        kind="textiel",
        number="1988-0211",
        picture="lantaarn",
    ),
    _Piece(
        path="/collectie/torenuurwerk.html",
        title="Torenuurwerk",
        year=1742,
        kind="werktuig",
        number="1972-0001",
        picture="toren",
    ),
    _Piece(
        path="/geschiedenis.html",
        title="Foto van het hoogwater",
        year=1926,
        kind="beeld",
        number="2003-0090",
        picture="hoogwater",
    ),
    _Piece(
        path="/nieuws/vlasweek.html",
        title="Herbarium met vlas",
        year=1811,
        kind="beeld",
        number="1954-0032",
        picture="vlas",
    ),
)
LOOK = Look(folder="2024", extra={"places": town_plan.PLACES, "pieces": _PIECES})
_SINCE = datetime(2023, 10, 2, 9, tzinfo=UTC)


def build(edition: Edition) -> Iterator[Resource]:
    """Every resource. Missing on purpose: the drawing of the water board and the report on the damask."""
    yield from render.html_pages(edition, LOOK)
    yield from _own_pages(edition)
    yield render.static(LOOK, "huis.css", "/huis.css", "text/css; charset=utf-8", _SINCE)
    yield render.static(LOOK, "merk.svg", "/merk.svg", "image/svg+xml", _SINCE)
    for name in ("huis.js", "collectie.js"):
        yield render.static(LOOK, name, f"/script/{name}", "text/javascript; charset=utf-8", _SINCE)
    yield Resource(path="/data/collectie.json", type="application/json", changed=_SINCE, body=_data())
    yield Resource(
        path="/site.webmanifest", type="application/manifest+json", changed=_SINCE, body=_manifest()
    )
    yield render.robots(edition, sitemap=True)
    yield render.sitemap(edition, extra=("/collectie/", "/kaart/"))
    yield render.feed(edition)
    yield render.redirect(edition, "/openingstijden", "/bezoek.html", status=308)
    yield render.redirect(edition, "/collectie.html", "/collectie/")
    yield render.redirect(edition, "/", f"http://{HOST}/kaart/", host=MAP_HOST)
    yield Resource(path="/folder.pdf", type="application/pdf", changed=_SINCE, body=_folder())
    yield Resource(
        path="/media/veldwijk-1832.svg", type="image/svg+xml", changed=_SINCE, body=town_plan.svg()
    )
    for name in sorted({piece.picture for piece in _PIECES}):
        yield Resource(
            path=f"/media/{name}.webp", type="image/webp", changed=_SINCE, body=pictures.webp(name, 1080)
        )
        yield Resource(
            path=f"/media/{name}.jpg", type="image/jpeg", changed=_SINCE, body=pictures.jpeg(name, 720, 70)
        )


def _own_pages(edition: Edition) -> Iterator[Resource]:
    intro = (
        "8.940 objecten, stuk voor stuk met herkomst. Hieronder de topstukken; de rest staat in de open data."
    )
    own = (
        SitePage(path="/collectie/", language="nl", title="Collectie", blocks=blocks(intro)),
        SitePage(
            path="/kaart/",
            language="nl",
            title="Veldwijk in 1832",
            blocks=blocks("De oudste plattegrond van de stad, opnieuw getekend."),
        ),
    )
    for page in own:
        body = render.page_bytes(page, edition, LOOK)
        yield Resource(path=page.path, type="text/html; charset=utf-8", changed=_SINCE, body=body)


def _data() -> bytes:
    pieces = [
        {
            "titel": piece.title,
            "jaar": piece.year,
            "soort": piece.kind,
            "nummer": piece.number,
            "pad": piece.path,
            "beeld": f"/media/{piece.picture}.webp",
        }
        for piece in _PIECES
    ]
    return json.dumps({"stukken": pieces}, ensure_ascii=False, indent=1).encode()


def _manifest() -> bytes:
    icons = [{"src": "/merk.svg", "sizes": "any", "type": "image/svg+xml"}]
    return json.dumps(
        {"name": "Museum Veldwijk", "start_url": "/", "display": "browser", "icons": icons}, indent=1
    ).encode()


def _folder() -> bytes:
    lines = [
        "Wie is van hier? Wat is van wie?",
        "Wer ist von hier? Was gehört wem?",
        "Who is from here? What belongs to whom?",
        "",
        "Woensdag t/m zondag 10-17 uur, met tijdslot.",
        "Volwassenen € 11. Op donderdag betaal je wat je kunt missen.",
        "",
        "Kijk mee: de restauratie van het torenuurwerk via de livestream.",
        "Een lege tafel: het damast is terug bij de familie Salomons.",
    ]
    return brochure.pdf("Een huis op de grens", lines, picture="lantaarn", year="2024")
