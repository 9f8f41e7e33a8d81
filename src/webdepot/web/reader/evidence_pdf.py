"""The evidence sheet as a PDF file, with the signed document attached to it.

Western European text uses the fonts that every PDF reader has. For other text the needed parts of DejaVu are
embedded (Greek, Cyrillic, Armenian, Georgian and more), if this system has it (Debian's `fonts-dejavu-core`).
Characters of other scripts are written as `\\u{416}`. The attached document has the exact text.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import WrapMode, XPos, YPos
from fpdf.fonts import TTFFont

from webdepot.version import VERSION
from webdepot.web.reader.evidence_sheet import SheetSection

ENCODING = "cp1252"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
_FILES = {
    ("sans", ""): "DejaVuSans.ttf",
    ("sans", "B"): "DejaVuSans-Bold.ttf",
    ("mono", ""): "DejaVuSansMono.ttf",
}
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
"""Directions of letters that would have to be turned round and joined."""
_LABEL_MM = 52
_LABEL_CHARACTERS = 20
"""How many fit in one line of a label, at least."""
_LINE_MM = 4.6


class _Sheet(FPDF):
    """Pages with one line about their source at the foot, in fonts that have the characters of the texts."""

    def __init__(self, source: str, texts: Iterable[str], fonts: Path) -> None:
        super().__init__(format="A4")
        self.core_fonts_encoding = ENCODING
        self.sans, self.mono = "Helvetica", "Courier"
        self._known: frozenset[int] = frozenset()
        if not all(map(_is_western, "".join(texts))) and all(
            (fonts / name).is_file() for name in _FILES.values()
        ):
            self._embed(fonts)
        self.source = self.shown(source)
        self.set_margins(18, 16, 18)
        self.set_auto_page_break(True, margin=20)

    def _embed(self, fonts: Path) -> None:
        for (family, style), name in _FILES.items():
            self.add_font(family, style, fonts / name)
        self.sans, self.mono = "sans", "mono"
        self._known = frozenset.intersection(
            *(frozenset(font.cmap) for font in self.fonts.values() if isinstance(font, TTFFont))
        )

    def shown(self, text: str) -> str:
        """The text in the characters that the fonts have; control characters become spaces."""
        return "".join(map(self._shown, text))

    def _shown(self, character: str) -> str:
        if not character.isprintable():
            return " "
        if ord(character) in self._known if self._known else _is_western(character):
            is_turned = unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
            return character if not is_turned else _code(character)
        return _code(character)

    def footer(self) -> None:
        self.set_y(-14)
        self.set_font(self.sans, size=7.5)
        self.set_text_color(90)
        width = self.epw - 16
        self.cell(width, 4, _fitting(self, self.source, width))
        self.cell(16, 4, f"{self.page_no()}/{{nb}}", align="R")
        self.set_text_color(0)


def write(
    *,
    title: str,
    lead: str,
    source: str,
    sections: Sequence[SheetSection],
    language: str,
    made_at: datetime,
    attached: bytes,
    attached_name: str,
    fonts: Path = FONTS,
) -> bytes:
    """The file. `source` is at the foot of each page, `attached` the signed document, `fonts` the folder
    of DejaVu.
    """
    pdf = _Sheet(source, (title, lead, source, *_texts(sections)), fonts)
    pdf.set_title(title)
    pdf.set_producer(f"webdepot {VERSION}")
    pdf.set_lang(language)
    pdf.set_creation_date(made_at)
    pdf.add_page()
    pdf.set_font(pdf.sans, "B", 16)
    _paragraph(pdf, title, 7)
    pdf.ln(1)
    pdf.set_font(pdf.sans, size=9.5)
    _paragraph(pdf, lead, _LINE_MM)
    for section in sections:
        _section(pdf, section)
    pdf.embed_file(bytes=attached, basename=attached_name, mime_type="application/json")
    return bytes(pdf.output())


def _texts(sections: Sequence[SheetSection]) -> Iterator[str]:
    for section in sections:
        yield section.title
        for row in section.rows:
            yield from (row.label, row.value)


def _section(pdf: _Sheet, section: SheetSection) -> None:
    if pdf.will_page_break(24):  # not a heading alone at the foot of a page
        pdf.add_page()
    pdf.ln(3.5)
    pdf.set_font(pdf.sans, "B", 11.5)
    _paragraph(pdf, section.title, 6)
    pdf.set_draw_color(190)
    pdf.line(pdf.l_margin, pdf.get_y(), pdf.l_margin + pdf.epw, pdf.get_y())
    pdf.ln(1.2)
    for row in section.rows:
        _row(pdf, row.label, row.value, is_code=row.is_code)


def _row(pdf: _Sheet, label: str, value: str, *, is_code: bool) -> None:
    label, value = pdf.shown(label), pdf.shown(value)
    pdf.set_font(pdf.sans, size=8.5)
    if pdf.will_page_break(_LINE_MM * (1 + len(label) // _LABEL_CHARACTERS)):
        pdf.add_page()
    top, page = pdf.get_y(), pdf.page
    pdf.set_text_color(80)
    pdf.multi_cell(_LABEL_MM - 3, _LINE_MM, label, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    after_label = pdf.get_y()
    pdf.set_text_color(0)
    pdf.set_xy(pdf.l_margin + _LABEL_MM, top)
    pdf.set_font(pdf.mono if is_code else pdf.sans, size=7.8 if is_code else 8.5)
    pdf.multi_cell(
        pdf.epw - _LABEL_MM,
        _LINE_MM,
        value,
        align="L",
        wrapmode=WrapMode.CHAR if is_code else WrapMode.WORD,
        new_x=XPos.LMARGIN,
        new_y=YPos.NEXT,
    )
    if pdf.page == page:
        pdf.set_y(max(pdf.get_y(), after_label))
    pdf.ln(0.6)


def _paragraph(pdf: _Sheet, text: str, height_mm: float) -> None:
    pdf.multi_cell(0, height_mm, pdf.shown(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _fitting(pdf: FPDF, text: str, width_mm: float) -> str:
    while len(text) > 10 and pdf.get_string_width(text) > width_mm - 2:
        text = text[: -max(4, len(text) // 20)] + "..."
    return text


def _is_western(character: str) -> bool:
    try:
        character.encode(ENCODING)
    except UnicodeEncodeError:
        return False
    return True


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
