"""The town plan of 1832 on the sample site: the same shapes as SVG and, for older editions, as PNG tiles."""

import io
from dataclasses import dataclass
from functools import cache

from PIL import Image, ImageDraw

SIDE = 512
TILE = 256
_RIVER = ((0, 300), (70, 288), (140, 310), (215, 350), (300, 352), (380, 318), (450, 322), (512, 300))
_STREETS = (
    ((40, 0), (120, 130), (230, 200), (250, 352), (262, 512)),
    ((0, 190), (120, 170), (230, 200), (360, 180), (512, 210)),
    ((230, 200), (330, 90), (400, 0)),
    ((0, 430), (140, 420), (262, 440), (400, 430), (512, 460)),
)
_BLOCKS = (
    ((140, 130), (215, 178), (190, 182), (132, 160)),
    ((250, 190), (318, 110), (345, 128), (350, 172)),
    ((140, 190), (220, 212), (232, 300), (160, 280)),
    ((250, 214), (352, 196), (366, 290), (262, 330)),
    ((276, 450), (390, 444), (400, 490), (282, 500)),
)
_PAPER, _WATER, _STREET, _HOUSE, _INK = "#f1e6cc", "#9db9bd", "#fbf6e8", "#c98b6b", "#4a3a2c"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPin:
    """A place on the plan."""

    name: str
    note: str
    x: int
    y: int


PLACES = (
    MapPin(name="Linnenwaag", note="Het museum, sinds 1931. Hier werd elke baal gewogen.", x=238, y=252),
    MapPin(name="Lurzebrug", note="Drie bogen, 1611. In het midden liep de grens.", x=252, y=350),
    MapPin(name="Bleekveld", note="In mei lag hier het linnen van veertig dorpen.", x=96, y=238),
    MapPin(name="Toren", note="Het uurwerk van Terwogt, 1742, staat stil op vijf voor vier.", x=300, y=160),
    MapPin(name="Douanepost", note="Commies Tönnis, zeventien jaar nachtdienst.", x=330, y=438),
)


def svg() -> bytes:
    """The plan as a vector drawing; each place is a group with its name as title."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" role="img" '
        'aria-label="Veldwijk in 1832">',
        f'<rect width="{SIDE}" height="{SIDE}" fill="{_PAPER}"/>',
        _line(_RIVER, _WATER, 38),
        *(_line(street, _STREET, 13) for street in _STREETS),
        *(
            f'<polygon points="{_points(block)}" fill="{_HOUSE}" stroke="{_INK}" stroke-width="1"/>'
            for block in _BLOCKS
        ),
    ]
    for place in PLACES:
        parts.append(
            f'<g><title>{place.name}: {place.note}</title><circle cx="{place.x}" cy="{place.y}" r="7" '
            'fill="#a33a34"/>'
        )
        parts.append(
            f'<text x="{place.x + 12}" y="{place.y + 5}" font-family="serif" font-size="17" '
            f'fill="{_INK}">{place.name}</text></g>'
        )
    return "\n".join([*parts, "</svg>"]).encode()


@cache
def tile_png(column: int, row: int) -> bytes:
    """One of the four squares of the plan."""
    out = io.BytesIO()
    left, top = column * TILE, row * TILE
    _raster().crop((left, top, left + TILE, top + TILE)).quantize(48).save(out, "PNG", optimize=True)
    return out.getvalue()


@cache
def _raster() -> Image.Image:
    image = Image.new("RGB", (SIDE * 2, SIDE * 2), _PAPER)
    pen = ImageDraw.Draw(image)
    pen.line(_doubled(_RIVER), fill=_WATER, width=76, joint="curve")
    for street in _STREETS:
        pen.line(_doubled(street), fill=_STREET, width=26, joint="curve")
    for block in _BLOCKS:
        pen.polygon(_doubled(block), fill=_HOUSE, outline=_INK, width=2)
    return image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _doubled(points: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    return [(x * 2, y * 2) for x, y in points]


def _line(points: tuple[tuple[int, int], ...], colour: str, width: int) -> str:
    style = f'stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"'
    return f'<polyline points="{_points(points)}" fill="none" {style}/>'


def _points(points: tuple[tuple[int, int], ...]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
