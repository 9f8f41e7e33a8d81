"""Image files of the sample site, in the formats of each period: GIF, JPEG, PNG, WebP, ICO."""

import io
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from webdepot.demo import motifs

_BLUE, _PAPER, _RED = "#2e4a7d", "#f4eddc", "#a33a34"


@cache
def jpeg(motif: str, width: int, quality: int) -> bytes:
    return _encoded(motifs.draw(motif, width), "JPEG", quality=quality, optimize=True)


@cache
def webp(motif: str, width: int) -> bytes:
    return _encoded(motifs.draw(motif, width), "WEBP", quality=72, method=4)


@cache
def banner_gif(title: str) -> bytes:
    """The header of a page of 2003: damask on the left, the title in a bevelled box."""
    image = Image.new("RGB", (760, 90), _BLUE)
    image.paste(motifs.draw("damast", 270).crop((0, 30, 180, 120)), (0, 0))
    image.paste(motifs.draw("toren", 160).crop((20, 5, 140, 95)), (640, 0))
    pen = ImageDraw.Draw(image)
    pen.rectangle((180, 0, 639, 89), outline="#8fa5cf", width=3)
    pen.text((204, 18), title, font=ImageFont.load_default(34), fill=_PAPER)
    pen.text((206, 60), "linnen - water - grens", font=ImageFont.load_default(16), fill="#c7d2ea")
    return _encoded(image.quantize(64), "GIF")


@cache
def tile_gif() -> bytes:
    """A woven background that repeats."""
    image = Image.new("P", (16, 16))
    image.putpalette([244, 237, 220, 236, 227, 205])
    image.putdata([1 if (x // 4 + y // 4) % 2 and (x + y) % 2 else 0 for y in range(16) for x in range(16)])
    return _encoded(image, "GIF")


@cache
def new_gif() -> bytes:
    """A blinking NIEUW, as was usual in 2003."""
    frames = []
    for ground, ink in (("#ffe14d", _RED), (_RED, "#ffe14d")):
        frame = Image.new("RGB", (46, 16), ground)
        ImageDraw.Draw(frame).text((3, 1), "NIEUW!", font=ImageFont.load_default(11), fill=ink)
        frames.append(frame.quantize(8))
    return _encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=500, loop=0)


@cache
def counter_gif(number: int) -> bytes:
    """The visitor counter: digits on black."""
    image = Image.new("RGB", (86, 20), "black")
    pen = ImageDraw.Draw(image)
    for place, digit in enumerate(f"{number:06d}"):
        pen.rectangle((2 + place * 14, 2, 13 + place * 14, 17), fill="#222222")
        pen.text((4 + place * 14, 2), digit, font=ImageFont.load_default(14), fill="#7dff7d")
    return _encoded(image.quantize(8), "GIF")


@cache
def head_png(height: int) -> bytes:
    """A gradient one pixel wide, the background of box headers in 2009."""
    return _encoded(
        Image.composite(
            Image.new("RGB", (1, 256), "#16294d"), Image.new("RGB", (1, 256), "#5f83bd"), _shade()
        ).resize((1, height)),
        "PNG",
    )


@cache
def feed_png() -> bytes:
    """The orange feed icon."""
    image = Image.new("RGB", (64, 64), "#e9822e")
    pen = ImageDraw.Draw(image)
    pen.ellipse((10, 42, 22, 54), fill="white")
    for radius in (26, 44):
        pen.arc((10 - radius, 54 - radius, 10 + radius, 54 + radius), 270, 360, fill="white", width=8)
    return _encoded(image.resize((16, 16), Image.Resampling.LANCZOS), "PNG")


@cache
def favicon() -> bytes:
    """A weave of two threads."""
    image = Image.new("RGB", (32, 32), _PAPER)
    pen = ImageDraw.Draw(image)
    for at in (3, 13, 23):
        pen.rectangle((at, 0, at + 6, 31), fill=_BLUE)
    for number, at in enumerate((3, 13, 23)):
        pen.rectangle((0, at, 31, at + 6), fill=_RED)
        for over in range(3):
            if (over + number) % 2:
                pen.rectangle((3 + over * 10, at, 9 + over * 10, at + 6), fill=_BLUE)
    return _encoded(image, "ICO", sizes=[(16, 16), (32, 32)])


def _shade() -> Image.Image:
    return Image.linear_gradient("L").resize((1, 256))


def _encoded(image: Image.Image, format_name: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format_name, **options)
    return out.getvalue()
