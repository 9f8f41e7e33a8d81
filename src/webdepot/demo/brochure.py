"""The leaflet of the museum: a PDF of one page with real text, generated with pikepdf (ISO 32000-1)."""

import io

import pikepdf

from webdepot.demo import pictures

_WIDTH, _HEIGHT = 420, 595
"""A5 in points."""


def pdf(title: str, lines: list[str], *, picture: str, year: str) -> bytes:
    """A page with a picture, a title and lines of text; the same arguments give the same bytes."""
    document = pikepdf.new()
    photograph = document.make_stream(pictures.jpeg(picture, 600, 70))
    for key, value in {
        "Type": "/XObject",
        "Subtype": "/Image",
        "ColorSpace": "/DeviceRGB",
        "Filter": "/DCTDecode",
    }.items():
        photograph[f"/{key}"] = pikepdf.Name(value)
    photograph.Width, photograph.Height, photograph.BitsPerComponent = 600, 400, 8
    fonts = {f"/{name}": _font(document, base) for name, base in (("F1", "Helvetica"), ("F2", "Times-Bold"))}
    page = pikepdf.Dictionary(
        Type=pikepdf.Name.Page,
        MediaBox=[0, 0, _WIDTH, _HEIGHT],
        Resources=pikepdf.Dictionary(
            Font=pikepdf.Dictionary(fonts), XObject=pikepdf.Dictionary({"/Im1": photograph})
        ),
        Contents=document.make_stream(_content(title, lines)),
    )
    document.pages.append(pikepdf.Page(document.make_indirect(page)))
    document.docinfo["/Title"] = title
    document.docinfo["/Author"] = "Museum Veldwijk"
    document.docinfo["/CreationDate"] = f"D:{year}0301090000Z"
    out = io.BytesIO()
    document.save(
        out,
        deterministic_id=True,
        min_version="1.4",
        force_version="1.4",
        object_stream_mode=pikepdf.ObjectStreamMode.disable,
    )
    return out.getvalue()


def _font(document: pikepdf.Pdf, base: str) -> pikepdf.Object:
    kind = pikepdf.Name.Font
    return document.make_indirect(
        pikepdf.Dictionary(
            Type=kind,
            Subtype=pikepdf.Name.Type1,
            BaseFont=pikepdf.Name(f"/{base}"),
            Encoding=pikepdf.Name.WinAnsiEncoding,
        )
    )


def _content(title: str, lines: list[str]) -> bytes:
    """The drawing operators: background, picture, title, then the lines of text."""
    parts = [
        b"0.957 0.929 0.863 rg 0 0 420 595 re f",
        b"q 420 0 0 280 0 315 cm /Im1 Do Q",
        b"0.18 0.29 0.49 rg 0 303 420 12 re f",
    ]
    parts.append(b"BT /F2 26 Tf 32 258 Td " + _text(title) + b" Tj ET")
    parts.append(b"0.2 g BT /F1 11 Tf 15 TL 32 226 Td")
    parts.extend(_text(line) + b" Tj T*" for line in lines)
    return b"\n".join([*parts, b"ET"])


def _text(text: str) -> bytes:
    """A PDF string in the encoding of the fonts (Windows-1252), with the three special characters escaped."""
    raw = text.encode("cp1252", "replace")
    return b"(" + raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"
