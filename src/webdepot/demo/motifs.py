"""The pictures of the sample museum, drawn by code: seven motifs on a field of 150 by 100 units.

Each motif is a function that draws on a `Field`. The field scales units to pixels, and draws three times too
large, so that scaling down smooths the edges. The same motif is a small photograph in one edition and a wide
banner in another. Random details (stems, grain, windows) use a fixed seed, so that a motif always looks the
same.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

WIDTH, HEIGHT = 150, 100
_OVERSIZE = 3
Point = tuple[float, float]


def draw(name: str, width: int) -> Image.Image:
    """A motif with the given width in pixels and two thirds of it as height; KeyError for an unknown name."""
    return _large(name).resize((width, round(width * HEIGHT / WIDTH)), Image.Resampling.LANCZOS)


@lru_cache(maxsize=8)
def _large(name: str) -> Image.Image:
    field = Field(_OVERSIZE * 400)
    MOTIFS[name](field)
    return field.image


class Field:
    """A drawing surface in units; (0, 0) is the upper left corner."""

    def __init__(self, width: int) -> None:
        self.scale = width / WIDTH
        self.image = Image.new("RGB", (width, round(HEIGHT * self.scale)))
        self.pen = ImageDraw.Draw(self.image)

    def sky(self, top: str, bottom: str, *, until: float = HEIGHT) -> None:
        """A vertical gradient from the upper edge down to `until`."""
        height = round(until * self.scale)
        shade = Image.linear_gradient("L").resize((self.image.width, height))
        below, above = (Image.new("RGB", shade.size, colour) for colour in (bottom, top))
        self.image.paste(Image.composite(below, above, shade), (0, 0))

    def polygon(self, points: Sequence[Point], colour: str) -> None:
        self.pen.polygon([(x * self.scale, y * self.scale) for x, y in points], fill=colour)

    def box(self, left: float, top: float, right: float, bottom: float, colour: str) -> None:
        self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)

    def disc(self, x: float, y: float, radius: float, colour: str, *, squash: float = 1.0) -> None:
        box = (x - radius, y - radius * squash, x + radius, y + radius * squash)
        self.pen.ellipse([value * self.scale for value in box], fill=colour)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        self.pen.line(
            [(x * self.scale, y * self.scale) for x, y in points],
            fill=colour,
            width=max(1, round(width * self.scale)),
            joint="curve",
        )

    def hills(self, height: float, swing: float, phase: float, colour: str) -> None:
        """A soft ridge across the whole width, filled down to the lower edge."""
        ridge = [
            (x, height + swing * math.sin(x / 21 + phase) + swing / 2 * math.sin(x / 9 + 2 * phase))
            for x in range(0, WIDTH + 2, 2)
        ]
        self.polygon([(0, HEIGHT), *ridge, (WIDTH, HEIGHT)], colour)

    def glow(self, x: float, y: float, radius: float, colour: str) -> None:
        """Light added around a point."""
        light = Image.new("RGB", self.image.size)
        box = [
            value * self.scale for value in (x - radius / 2, y - radius / 2, x + radius / 2, y + radius / 2)
        ]
        ImageDraw.Draw(light).ellipse(box, fill=colour)
        light = (
            light.reduce(8).filter(ImageFilter.GaussianBlur(radius * self.scale / 24)).resize(self.image.size)
        )
        self.image.paste(ImageChops.add(self.image, light))


def _bridge(field: Field) -> None:
    """The three arches over the river in the evening."""
    field.sky("#2f5d7c", "#f6c58f", until=64)
    field.disc(108, 52, 9, "#fff1cf")
    field.hills(50, 4, 0.4, "#7d93a0")
    field.hills(56, 3, 2.1, "#54707b")
    field.polygon([(20, 60), (20, 44), (23, 30), (26, 44), (26, 60)], "#3c525c")
    field.box(26, 50, 38, 60, "#3c525c")
    field.box(0, 62, WIDTH, HEIGHT, "#3f6f86")
    field.box(0, 56, WIDTH, 72, "#6b4a3f")
    field.box(0, 54, WIDTH, 57, "#8a6253")
    for x in (30.0, 75.0, 120.0):
        field.disc(x, 73, 17, "#35606f")
        field.disc(x, 74, 15.5, "#274b59")
        field.box(x - 17, 73, x + 17, 92, "#3f6f86")
        field.box(x - 15.5, 73, x + 15.5, 76, "#335f71")
    for x in (7.5, 52.5, 97.5, 142.5):
        field.polygon([(x - 5, 57), (x + 5, 57), (x + 6, 84), (x - 6, 84)], "#5a3d34")
    for step in range(7):
        y = 86 + step * 2
        field.line([(104 - step * 1.8, y), (113 + step * 1.3, y)], "#e9bd8e", 0.5)
        field.line([(8 + (step * 37) % 60, y + 1), (24 + (step * 37) % 60, y + 1)], "#5d8ba0", 0.4)


def _loom(field: Field) -> None:
    """Warp and weft in the loom of 1780: above the bare warp, below the finished twill."""
    field.sky("#2b2320", "#4a3a30")
    for number in range(97):
        x = 27 + number
        field.line([(x, 8), (x, 94)], "#efe4cf" if number % 2 else "#cdbb9a", 0.45)
    for row in range(46):
        level = 52 + row * 0.95
        for number in range(48):
            on = (number + row) % 4 < 2 if (row // 12 + number // 12) % 2 else (number - row) % 4 < 2
            field.box(
                26.5 + number * 2, level, 28.5 + number * 2, level + 0.8, "#2e4a7d" if on else "#e6dcc6"
            )
    field.polygon([(22, 49), (128, 46), (128, 51), (22, 54)], "#7b5233")
    field.line([(22, 50), (128, 47)], "#a87a4e", 0.8)
    for left in (12, 126):
        field.box(left, 0, left + 12, HEIGHT, "#5f3f28")
        field.box(left + 1.5, 0, left + 3.5, HEIGHT, "#7d5638")
    field.box(8, 6, 142, 15, "#6b4930")
    field.box(8, 7, 142, 8.5, "#8f6441")
    field.polygon([(58, 59), (92, 58), (97, 61), (92, 64), (58, 65), (53, 62)], "#b98752")
    field.box(66, 60, 84, 63, "#3a2a1e")
    field.disc(75, 61.5, 1.6, "#d9c79f")


def _flax(field: Field) -> None:
    """A field of flax in flower, at noon in June."""
    chance = Random(1780)
    field.sky("#5aa0cf", "#e8f3f5", until=60)
    for across, down, size in ((28, 16, 9), (38, 18, 12), (50, 17, 8), (112, 27, 7), (121, 28, 10)):
        field.disc(across, down, size, "#fbfdfd", squash=0.38)
    field.hills(50, 2, 1.2, "#87ab8a")
    field.hills(55, 1.5, 3.0, "#5f8f66")
    field.box(0, 58, WIDTH, HEIGHT, "#6fa06a")
    for _ in range(900):
        depth = chance.random() ** 0.6
        x, y = chance.uniform(-2, WIDTH + 2), 58 + depth * 38
        field.disc(x, y, 0.3 + depth * 0.7, chance.choice(("#7f9fe0", "#95b1ec", "#6d8cd4")), squash=0.6)
    for _ in range(90):
        x, top = chance.uniform(0, WIDTH), chance.uniform(55, 82)
        field.line(
            [(x, HEIGHT), (x + chance.uniform(-3, 3), top + 6), (x + chance.uniform(-4, 4), top)],
            chance.choice(("#3f7a47", "#4f8b4f")),
            0.5,
        )
        for petal in range(5):
            angle = petal * math.tau / 5 + chance.random()
            field.disc(
                x + 1.7 * math.cos(angle),
                top + 1.5 * math.sin(angle),
                1.5,
                chance.choice(("#5877d0", "#6f8fe2")),
            )
        field.disc(x, top, 0.8, "#f4e9a8")


def _tower(field: Field) -> None:
    """Stepped gables on the market, and the tower with Terwogt's clock."""
    field.sky("#cfe3ea", "#fbf3e2")
    _gables(
        field, 84, ("#b5523b", "#8e3f31", "#c9785a", "#a3604a", "#7d4a3c", "#bb6a4c", "#94513f"), "#f7ead2"
    )
    field.box(66, 30, 86, 84, "#7a5a48")
    field.box(66, 30, 69, 84, "#8c6a56")
    field.polygon([(64, 31), (76, 4), (88, 31)], "#39586a")
    field.polygon([(76, 4), (88, 31), (78, 31)], "#2e4857")
    field.disc(76, 42, 7.4, "#3a2b22")
    field.disc(76, 42, 6.4, "#f8efd9")
    for hour in range(12):
        angle = hour * math.tau / 12
        field.disc(76 + 5.2 * math.cos(angle), 42 + 5.2 * math.sin(angle), 0.5, "#3a2b22")
    field.line([(76, 42), (76, 37.4)], "#3a2b22", 0.8)
    field.line([(76, 42), (79.4, 44.2)], "#3a2b22", 0.9)
    field.box(0, 84, WIDTH, HEIGHT, "#b9a78f")
    for row in range(5):
        for x in range(-6 + row * 3 % 7, WIDTH, 7):
            field.box(x, 85 + row * 3.2, x + 6.2, 87.6 + row * 3.2, "#c6b69f" if (x + row) % 3 else "#ad9b83")


def _gables(field: Field, ground: float, colours: Sequence[str], light: str) -> None:
    for number, colour in enumerate(colours):
        left, width, top = number * 22 - 3, 21, 52 + (number * 5) % 11
        field.box(left, top, left + width, ground, colour)
        for step in range(5):
            field.box(
                left + 2.1 * step, top - 3 * (step + 1), left + width - 2.1 * step, top - 3 * step, colour
            )
        for row in range(2):
            for column in range(3):
                x, y = left + 3 + column * 6, top + 5 + row * 12
                if y + 7 < ground:
                    field.box(x, y, x + 3.6, y + 7, light)
                    field.line([(x + 1.8, y), (x + 1.8, y + 7)], colour, 0.4)


def _lantern(field: Field) -> None:
    """The border at night: post, birches, and a lantern on the smugglers' path."""
    chance = Random(1926)
    field.sky("#0b1730", "#2c4468")
    for _ in range(70):
        field.disc(chance.uniform(0, WIDTH), chance.uniform(0, 50), chance.uniform(0.1, 0.4), "#dfe8f5")
    field.disc(118, 20, 8, "#f2ecd4")
    field.disc(115, 18, 7.4, "#11203c")
    field.hills(66, 3, 0.8, "#1c3148")
    field.hills(74, 2, 2.6, "#142538")
    field.polygon([(60, 74), (66, 74), (112, HEIGHT), (48, HEIGHT)], "#2b3a48")
    for x, width in ((14, 3.4), (27, 2.2), (136, 3.2), (125, 2)):
        field.box(x, 8, x + width, 94, "#c9ced0")
        for _ in range(12):
            y = chance.uniform(8, 92)
            field.box(x, y, x + width * chance.uniform(0.3, 0.9), y + 0.8, "#3a4149")
    for band in range(8):
        field.box(92, 38 + band * 6, 98, 44 + band * 6, "#d9dcd8" if band % 2 else "#a33a34")
    field.polygon([(91, 38), (95, 33), (99, 38)], "#26333f")
    field.line([(95, 52), (60, 46)], "#d9dcd8", 2.2)
    for part in range(3):
        field.line([(88 - part * 12, 50.8 - part * 2), (82 - part * 12, 49.8 - part * 2)], "#a33a34", 2.2)
    field.glow(64, 80, 30, "#8a6a24")
    field.box(61, 75, 67, 86, "#2a1d10")
    field.box(62, 77, 66, 84.5, "#ffd877")
    field.line([(62, 75), (64, 70), (66, 75)], "#2a1d10", 0.7)


def _damask(field: Field) -> None:
    """Ornament of the table cloth of 1743: tone on tone."""
    field.sky("#ece5d8", "#ddd3c1")
    for row in range(-1, 4):
        for column in range(-1, 5):
            _rosette(field, column * 38 + (row % 2) * 19, row * 33 + 16)


def _rosette(field: Field, x: float, y: float) -> None:
    for petal in range(16):
        angle = petal * math.tau / 16
        reach = 13 if petal % 2 else 9
        tip = (x + reach * math.cos(angle), y + reach * math.sin(angle))
        side = [
            (x + reach * 0.55 * math.cos(angle + turn), y + reach * 0.55 * math.sin(angle + turn))
            for turn in (0.22, -0.22)
        ]
        field.polygon([(x, y), side[0], tip, side[1]], "#fbf8f1" if petal % 2 else "#c3b69f")
    for dot in range(24):
        angle = dot * math.tau / 24
        field.disc(x + 15.2 * math.cos(angle), y + 15.2 * math.sin(angle), 0.7, "#b7a98f")
    field.disc(x, y, 3.4, "#b7a98f")
    field.disc(x, y, 2.2, "#fbf8f1")


def _flood(field: Field) -> None:
    """High water on the market in January 1926, as an old photograph."""
    field.sky("#8d8d8d", "#dedede")
    _gables(
        field, 72, ("#6d6d6d", "#555555", "#7b7b7b", "#626262", "#4c4c4c", "#707070", "#5b5b5b"), "#cfcfcf"
    )
    field.box(0, 70, WIDTH, HEIGHT, "#9c9c9c")
    for row in range(15):
        for part in range(5):
            x = (row * 29 + part * 33) % WIDTH
            field.line(
                [(x, 71 + row * 2), (x + 9 + row, 71 + row * 2)], "#c4c4c4" if part % 2 else "#7a7a7a", 0.5
            )
    field.polygon([(56, 80), (98, 80), (91, 88), (63, 88)], "#2c2c2c")
    for x in (66, 76, 87):
        field.polygon([(x - 3, 80), (x + 3, 80), (x + 2, 70), (x - 2, 70)], "#3b3b3b")
        field.disc(x, 67.6, 2, "#b9b9b9")
    field.line([(90, 64), (102, 94)], "#2c2c2c", 0.8)
    grain = Image.frombytes("L", (300, 200), Random(1926).randbytes(60_000)).resize(field.image.size)
    grey = Image.blend(field.image.convert("L"), grain, 0.1)
    tone = Image.merge(
        "RGB", [grey.point(lambda value, top=top: value * top // 255) for top in (244, 226, 194)]
    )
    field.image.paste(tone)


MOTIFS: dict[str, Callable[[Field], None]] = {
    "brug": _bridge,
    "weefgetouw": _loom,
    "vlas": _flax,
    "toren": _tower,
    "lantaarn": _lantern,
    "damast": _damask,
    "hoogwater": _flood,
}
"""By the names of the museum's image files."""
