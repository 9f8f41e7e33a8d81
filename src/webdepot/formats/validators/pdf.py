"""PDF (ISO 32000): header and end, cross-references, objects and streams by qpdf (pikepdf), then the objects
by our own rules.

1. Its first and last bytes: header, end marker, and bytes before and after them.
2. qpdf reads cross-references and objects, unpacks every stream and reports what it had to repair.
3. The page tree, outlines, destinations, dates and so on (`pdf_objects`), which qpdf does not check.
"""

import re
from typing import Any, BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity
from webdepot.formats.validators import pdf_objects

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
            in_objects = list(pdf_objects.iter_problems(pdf, properties))
            repaired = [*pdf.get_warnings(), *pdf.check_pdf_syntax()]
            in_objects += _contents(pdf)
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
            raise MemoryError from error  # qpdf reports it as a general error
        return CheckResult(
            validity=Validity.NOT_VALID,
            findings=[finding("pdf-damaged", detail=_message(error))],
            properties=properties,
        )
    problems = list(dict.fromkeys([*around, *map(_message, repaired), *in_objects]))
    findings = [finding("pdf-problem", detail=problem) for problem in problems[:MOST_FINDINGS]]
    return CheckResult(
        validity=Validity.NOT_VALID if problems else Validity.VALID, findings=findings, properties=properties
    )


def _edges(stream: BinaryIO, properties: dict[str, Property]) -> list[str]:
    """Problems of the first and last bytes."""
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
            problems.append(f"{header.start()} bytes come before its header")
        if header[1] not in (b"1.0", b"1.1", b"1.2", b"1.3", b"1.4", b"1.5", b"1.6", b"1.7", b"2.0"):
            problems.append(f"version {header[1].decode()} does not exist")
    at = tail.rfind(b"%%EOF")
    if at < 0:
        problems.append("its end marker is missing")
    elif rest := tail[at + 5 :].strip(b"\r\n\t \0"):
        problems.append(f"{len(rest)} bytes follow its end marker")
    if tail.rfind(b"startxref") < 0:
        problems.append("it does not say where its cross-references are")
    return problems


def _contents(pdf: Any) -> list[str]:
    """A problem if no pages are left after qpdf has checked them."""
    return [] if len(pdf.pages) else ["it has no pages"]


def _message(problem: object) -> str:
    """The message without the name that qpdf gives to its input stream."""
    return _NAME.sub("", str(problem))
