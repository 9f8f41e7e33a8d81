"""The evidence sheet as a PDF file, with the signed document attached to it.

It uses the fonts that every PDF reader has, which cover Western European languages only: other characters are
written as `\\u{416}`. The attached document has the exact text.
"""

from collections.abc import Sequence
from datetime import datetime

from fpdf import FPDF
from fpdf.enums import WrapMode, XPos, YPos

from webdepot.version import VERSION
from webdepot.web.reader.evidence_sheet import SheetSection

ENCODING = "cp1252"
_LABEL_MM = 52
_LABEL_CHARACTERS = 20
"""How many fit in one line of a label, at least."""
_LINE_MM = 4.6


class _Sheet(FPDF):
    """Pages with one line about their source at the foot."""

    def __init__(self, source: str) -> None:
        super().__init__(format="A4")
        self.core_fonts_encoding = ENCODING
        self.source = source
        self.set_margins(18, 16, 18)
        self.set_auto_page_break(True, margin=20)

    def footer(self) -> None:
        self.set_y(-14)
        self.set_font("Helvetica", size=7.5)
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
) -> bytes:
    """The file. `source` is at the foot of each page; `attached` is the signed document."""
    pdf = _Sheet(encodable(source))
    pdf.set_title(encodable(title))
    pdf.set_producer(f"webdepot {VERSION}")
    pdf.set_lang(language)
    pdf.set_creation_date(made_at)
    pdf.add_page()
    pdf.set_font("Helvetica", "B", 16)
    _paragraph(pdf, title, 7)
    pdf.ln(1)
    pdf.set_font("Helvetica", size=9.5)
    _paragraph(pdf, lead, _LINE_MM)
    for section in sections:
        _section(pdf, section)
    pdf.embed_file(bytes=attached, basename=attached_name, mime_type="application/json")
    return bytes(pdf.output())


def _section(pdf: FPDF, section: SheetSection) -> None:
    if pdf.will_page_break(24):  # not a heading alone at the foot of a page
        pdf.add_page()
    pdf.ln(3.5)
    pdf.set_font("Helvetica", "B", 11.5)
    _paragraph(pdf, section.title, 6)
    pdf.set_draw_color(190)
    pdf.line(pdf.l_margin, pdf.get_y(), pdf.l_margin + pdf.epw, pdf.get_y())
    pdf.ln(1.2)
    for row in section.rows:
        _row(pdf, row.label, row.value, is_code=row.is_code)


def _row(pdf: FPDF, label: str, value: str, *, is_code: bool) -> None:
    label, value = encodable(label), encodable(value)
    pdf.set_font("Helvetica", size=8.5)
    if pdf.will_page_break(_LINE_MM * (1 + len(label) // _LABEL_CHARACTERS)):
        pdf.add_page()
    top, page = pdf.get_y(), pdf.page
    pdf.set_text_color(80)
    pdf.multi_cell(_LABEL_MM - 3, _LINE_MM, label, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    after_label = pdf.get_y()
    pdf.set_text_color(0)
    pdf.set_xy(pdf.l_margin + _LABEL_MM, top)
    pdf.set_font("Courier" if is_code else "Helvetica", size=7.8 if is_code else 8.5)
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


def _paragraph(pdf: FPDF, text: str, height_mm: float) -> None:
    pdf.multi_cell(0, height_mm, encodable(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _fitting(pdf: FPDF, text: str, width_mm: float) -> str:
    while len(text) > 10 and pdf.get_string_width(text) > width_mm - 2:
        text = text[: -max(4, len(text) // 20)] + "..."
    return text


def encodable(text: str) -> str:
    """The text in the characters that the fonts have; control characters become spaces."""
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if not character.isprintable():
        return " "
    try:
        character.encode(ENCODING)
    except UnicodeEncodeError:
        return f"\\u{{{ord(character):x}}}"
    return character
