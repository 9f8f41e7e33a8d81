"""PDF through qpdf (pikepdf): cross-references, objects and streams are read to the end. Meaning (fonts, PDF/A) is not judged."""

import re
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding

MOST_FINDINGS = 10
_TAIL_BYTES = 2048
_STREAM = re.compile(r"^stream <[^>]*>:?\s*")


def check_pdf(stream: BinaryIO) -> tuple[Validity, list[Finding]]:
    import pikepdf

    size_bytes = stream.seek(0, 2)
    stream.seek(max(0, size_bytes - _TAIL_BYTES))
    has_end = b"%%EOF" in stream.read()
    stream.seek(0)
    try:
        with pikepdf.open(stream, suppress_warnings=True) as pdf:
            problems = list(pdf.get_warnings())
            pages = len(pdf.pages)
            problems += pdf.check_pdf_syntax()
    except pikepdf.PasswordError:
        return Validity.NOT_CHECKED, [finding("encrypted")]
    except (pikepdf.PdfError, pikepdf.DataDecodingError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        return Validity.NOT_VALID, [finding("pdf-damaged", detail=_words(error))]
    if not has_end:
        problems.insert(0, "it ends without its end mark")
    if not pages:
        problems.insert(0, "it has no pages")
    if problems:
        return Validity.NOT_VALID, [finding("pdf-problem", detail=problem) for problem in dict.fromkeys(map(_words, problems))][
            :MOST_FINDINGS
        ]
    return Validity.VALID, []


def _words(problem: object) -> str:
    """Without the name that qpdf gives to a stream it reads."""
    return _STREAM.sub("", str(problem))
