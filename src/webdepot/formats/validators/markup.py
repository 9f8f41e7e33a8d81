"""XML, SVG and HTML.

XML is read to its end as a stream, without external entities, network access or a tree in memory. A document
with an internal document type is valid if it conforms to it; any other document can only be well-formed,
since no schema is used. HTML is parsed as in browsers (https://html.spec.whatwg.org/multipage/parsing.html):
a page that ends within a tag, comment or script was cut off; other errors, which every browser corrects, are
warnings; breaches of conformance are notes.
"""

import codecs
import io
import re
from dataclasses import replace
from typing import BinaryIO

from lxml import etree

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity
from webdepot.formats.validators import html_tags
from webdepot.model import Finding
from webdepot.text import untrusted_xml

LONGEST_HTML_BYTES = 8 << 20
LONGEST_TREE_BYTES = 4 << 20
MOST_FINDINGS = 10
SVG_NAMESPACE = "http://www.w3.org/2000/svg"
_CHUNK_BYTES = 1 << 16
_LIMITS = (
    "Excessive depth",
    "huge text node",
    "Maximum entity amplification",
    "xmlSAX2Characters: huge",
    "Buffer size limit",
    "too long",
)
_OWN_TYPE = re.compile(rb"<!DOCTYPE\s[^\[<>\"']*+\[(?:(?!<!DOCTYPE)[^\]])*?<!ELEMENT", re.S)
_OUTSIDE_TYPE = re.compile(rb"<!DOCTYPE\s[^\[<>\"']*(?:SYSTEM|PUBLIC)", re.S)
_CUT_OFF = "eof-in-"
_GRAVE = frozenset(("duplicate-id", "missing-title"))
_CHARSET = re.compile(rb"<meta[^<>]+charset\s*+=\s*+[\"']?\s*+([\w:.-]{2,40})", re.I)
_DOCTYPE = re.compile(r"<!doctype\s+html", re.I)


def check_xml(stream: BinaryIO) -> CheckResult:
    """Check that it is well-formed, and that it conforms to its internal document type if it has one."""
    properties: dict[str, Property] = {}
    error = _read(stream, properties)
    if error is not None:
        return _not_well_formed(error, properties)
    stream.seek(0)
    data = stream.read(LONGEST_TREE_BYTES + 1)
    if len(data) <= LONGEST_TREE_BYTES and _OWN_TYPE.search(data[:_CHUNK_BYTES]):
        return _against_own_type(data, properties)
    return CheckResult(validity=Validity.WELL_FORMED, properties=properties)


def check_svg(stream: BinaryIO) -> CheckResult:
    done = check_xml(stream)
    if done.validity is Validity.NOT_VALID or done.properties.get("namespace") == SVG_NAMESPACE:
        return done
    root = done.properties.get("root")
    stream.seek(0)
    if root == "svg" and _OUTSIDE_TYPE.search(stream.read(_CHUNK_BYTES)):
        # The document type of SVG 1.0 and 1.1 sets the namespace; browsers do not read it, other programs do.
        return replace(done, findings=[*done.findings, finding("svg-by-type")])
    if root == "svg":
        return replace(done, findings=[*done.findings, finding("svg-without-namespace")])
    wrong = finding("svg-not-shown", detail="its first element is not svg")
    return CheckResult(validity=Validity.NOT_VALID, findings=[wrong], properties=done.properties)


def check_xml_part(stream: BinaryIO) -> str:
    """The first error in an XML part of a document; empty if it is well-formed."""
    error = _read(stream, {})
    return "" if error is None else f"line {error.lineno}: {error.msg}"


def _read(stream: BinaryIO, properties: dict[str, Property]) -> etree.XMLSyntaxError | None:
    seen, head = _Seen(properties), b""
    parser = untrusted_xml.parser(target=seen)
    try:
        while chunk := stream.read(_CHUNK_BYTES):
            head = head or chunk
            parser.feed(chunk)
        parser.close()
    except etree.XMLSyntaxError as error:
        return error
    finally:
        seen.finish()
    if _OUTSIDE_TYPE.search(head):
        # An external document type may declare prefixes, as in the manifests of old office documents.
        return None
    # libxml2 continues after an undeclared prefix; other parsers do not (https://www.w3.org/TR/xml-names/).
    wrong = next(
        (
            each
            for each in parser.feed_error_log
            if each.domain_name == "NAMESPACE" and "not defined" in each.message
        ),
        None,
    )
    return etree.XMLSyntaxError(wrong.message, wrong.type, wrong.line, wrong.column, None) if wrong else None


def _not_well_formed(error: etree.XMLSyntaxError, properties: dict[str, Property]) -> CheckResult:
    message, place = str(error.msg or error), f"line {error.lineno}" if error.lineno else ""
    if "entity" in message.lower() and ("amplification" in message or "loop" in message):
        message = f"its entities expand without limit ({message})"
    elif any(limit in message for limit in _LIMITS):
        problem = finding("nested-too-deep", place=place, detail=message)
        return CheckResult(validity=Validity.NOT_CHECKED, findings=[problem], properties=properties)
    if message.startswith("Unsupported encoding"):
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("encoding-unknown", detail=message)],
            properties=properties,
        )
    problem = finding("xml-not-well-formed", place=place, detail=message)
    return CheckResult(validity=Validity.NOT_VALID, findings=[problem], properties=properties)


def _against_own_type(data: bytes, properties: dict[str, Property]) -> CheckResult:
    document = etree.fromstring(data, untrusted_xml.parser()).getroottree()
    own = document.docinfo.internalDTD
    if own is None or document.docinfo.system_url:
        return CheckResult(validity=Validity.WELL_FORMED, properties=properties)
    if own.validate(document):
        return CheckResult(validity=Validity.VALID, properties=properties)
    errors = [
        finding("xml-not-valid", place=f"line {each.line}", detail=each.message) for each in own.error_log
    ][:MOST_FINDINGS]
    return CheckResult(validity=Validity.NOT_VALID, findings=errors, properties=properties)


def check_html(stream: BinaryIO) -> CheckResult:
    import turbohtml
    from turbohtml import conformance

    data = stream.read(LONGEST_HTML_BYTES + 1)
    if len(data) > LONGEST_HTML_BYTES:
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("too-large", detail=f"more than {LONGEST_HTML_BYTES} bytes")],
        )
    if (
        data.lstrip()[:5] == b"<?xml"
        and (done := check_xml(io.BytesIO(data))).validity is not Validity.NOT_VALID
    ):
        return done  # a page written as XML is checked as XML
    document = turbohtml.parse(data)
    errors = [(error.code, error.line) for error in document.errors]
    properties: dict[str, Property] = {"encoding": _encoding(data), "words": len(document.text.split())}
    if cut := [(code, line) for code, line in errors if code.startswith(_CUT_OFF)]:
        findings = [
            finding("html-cut-off", place=f"line {line}", detail=code) for code, line in cut[:MOST_FINDINGS]
        ]
        return CheckResult(validity=Validity.NOT_VALID, findings=findings, properties=properties)
    page = data.decode("latin-1")
    errors += [(message, page.count("\n", 0, at) + 1) for message, at in html_tags.errors_of(page)]
    findings = _summarise("html-error", errors)
    messages = [
        (each.code, each.line) for each in conformance.check(document).messages if each.severity == "error"
    ]
    findings += _summarise("html-unfit", [each for each in messages if each[0] in _GRAVE])
    findings += _summarise("html-remark", [each for each in messages if each[0] not in _GRAVE])
    if "<html" in page[:_CHUNK_BYTES].lower() and not _DOCTYPE.search(page):
        findings += _summarise("html-unfit", [("it has no document type", 1)])
    unfit = any(each.code == "formats.html-unfit" for each in findings)
    validity = Validity.NOT_VALID if errors else Validity.WELL_FORMED if unfit else Validity.VALID
    return CheckResult(validity=validity, findings=findings[: 2 * MOST_FINDINGS], properties=properties)


def _summarise(code: str, errors: list[tuple[str, int]]) -> list[Finding]:
    """One finding for each kind of error, with its first line and how often it occurs."""
    places: dict[str, list[int]] = {}
    for message, line in errors:
        places.setdefault(message, []).append(line)
    return [
        finding(
            code,
            place=f"line {lines[0]}" if lines[0] else "",
            detail=message if len(lines) == 1 else f"{message} ({len(lines)} times)",
        )
        for message, lines in list(places.items())[:MOST_FINDINGS]
    ]


def _encoding(data: bytes) -> str:
    """The encoding that a browser would use, from the bytes alone."""
    for mark, name in (
        (codecs.BOM_UTF8, "UTF-8"),
        (codecs.BOM_UTF16_LE, "UTF-16"),
        (codecs.BOM_UTF16_BE, "UTF-16"),
    ):
        if data.startswith(mark):
            return name
    if charset := _CHARSET.search(data[:4096]):
        return charset[1].decode("ascii").upper()
    if data.isascii():
        return "US-ASCII"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "8-bit"
    return "UTF-8"


class _Seen:
    """Parser target that keeps only the root element and counts, so that memory use is constant."""

    def __init__(self, properties: dict[str, Property]) -> None:
        self._properties = properties
        self._elements = self._words = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._elements:
            namespace, _, local = tag.rpartition("}")
            self._properties |= {
                "root": local[:100],
                **({"namespace": namespace[1:][:200]} if namespace else {}),
            }
            if local == "svg":
                self._properties |= {
                    name: attributes[name][:60]
                    for name in ("width", "height", "viewBox")
                    if name in attributes
                }
        self._elements += 1

    def end(self, tag: str) -> None: ...

    def data(self, text: str) -> None:
        self._words += len(text.split())

    def comment(self, text: str) -> None: ...

    def close(self) -> None: ...

    def finish(self) -> None:
        self._properties |= {"elements": self._elements, "words": self._words}
