"""PDF (ISO 32000): bytes around it, cross-references, objects and streams by qpdf (pikepdf), then the meaning
by own rules.

1. Its first and last bytes: header, end mark, what stands before and behind them.
2. qpdf reads cross-references and objects, unpacks every stream and tells what it had to mend.
3. The tree of pages, outlines, destinations, dates and so on (`pdf_objects`), which qpdf does not judge.
"""

import re
from typing import Any, BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validators import pdf_objects
from webdepot.formats.validity import CheckResult, Property, Validity

MOST_FINDINGS = 10
_EDGE_BYTES = 2048
_HEADER = re.compile(rb"%PDF-(\d\.\d)")
_NAME = re.compile(r"^(?:stream )?<[^>]*>:?\s*|^(?:stream|file) [^ ]*:?\s+")


def check_pdf(stream: BinaryIO) -> CheckResult:
    import pikepdf

    properties: dict[str, Property] = {}
    around = _edges(stream, properties)
    stream.seek(0)
    try:
        with pikepdf.open(stream, suppress_warnings=True) as pdf:
            properties |= {"version": str(pdf.pdf_version), "encrypted": bool(pdf.is_encrypted)}
            meaning = list(pdf_objects.iter_problems(pdf, properties))
            mended = [*pdf.get_warnings(), *pdf.check_pdf_syntax()]
            meaning += _contents(pdf)
    except pikepdf.PasswordError:
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("encrypted")],
            properties={**properties, "encrypted": True},
        )
    except (
        pikepdf.PdfError,
        pikepdf.DataDecodingError,
        ValueError,
        RuntimeError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        if "alloc" in str(error) or "memory" in str(error).lower():
            raise MemoryError from error  # qpdf's own word for it
        return CheckResult(
            validity=Validity.NOT_VALID,
            findings=[finding("pdf-damaged", detail=_words(error))],
            properties=properties,
        )
    problems = list(dict.fromkeys([*around, *map(_words, mended), *meaning]))
    findings = [finding("pdf-problem", detail=problem) for problem in problems[:MOST_FINDINGS]]
    return CheckResult(
        validity=Validity.NOT_VALID if problems else Validity.VALID, findings=findings, properties=properties
    )


def _edges(stream: BinaryIO, properties: dict[str, Property]) -> list[str]:
    """What is wrong with the first and last bytes."""
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(_EDGE_BYTES)
    stream.seek(max(0, size_bytes - _EDGE_BYTES))
    tail = stream.read()
    problems: list[str] = []
    header = _HEADER.search(head)
    if not header:
        problems.append("it has no header with a version")
    else:
        properties["version"] = header[1].decode()
        if header.start():
            problems.append(f"{header.start()} bytes stand before its header")
        if header[1] not in (b"1.0", b"1.1", b"1.2", b"1.3", b"1.4", b"1.5", b"1.6", b"1.7", b"2.0"):
            problems.append(f"version {header[1].decode()} does not exist")
    at = tail.rfind(b"%%EOF")
    if at < 0:
        problems.append("it ends without its end mark")
    elif rest := tail[at + 5 :].strip(b"\r\n\t \0"):
        problems.append(f"{len(rest)} bytes follow behind its end mark")
    if tail.rfind(b"startxref") < 0:
        problems.append("it does not say where its cross-references are")
    return problems


def _contents(pdf: Any) -> list[str]:
    """Pages that are no pages any more after qpdf has looked at them."""
    return [] if len(pdf.pages) else ["it has no pages"]


def _words(problem: object) -> str:
    """Without the name that qpdf gives to a stream it reads."""
    return _NAME.sub("", str(problem))
