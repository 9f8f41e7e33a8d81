"""XML, SVG and HTML.

XML is read to its end as a stream, without entities from outside, without the network and without keeping a
tree. A document that brings its own document type is valid if it keeps to it, otherwise well-formed is what
can be said, since no schema is asked. HTML is parsed as browsers do
(https://html.spec.whatwg.org/multipage/parsing.html): a page that ends within a tag, comment or script was
cut off; other errors are mended by every browser and told as warnings; what conforming documents should not
have is noted.
"""

import codecs
import io
import re
from dataclasses import replace
from typing import BinaryIO

from lxml import etree

from webdepot.formats.texts import finding
from webdepot.formats.validators import html_tags
from webdepot.formats.validity import CheckResult, Property, Validity
from webdepot.model import Finding

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
_OWN_TYPE = re.compile(rb"<!DOCTYPE\s+[^\[>\"']*\[[^\]]*<!ELEMENT", re.S)
_OUTSIDE_TYPE = re.compile(rb"<!DOCTYPE\s+[^\[>\"']*(?:SYSTEM|PUBLIC)", re.S)
_CUT_OFF = "eof-in-"
_GRAVE = frozenset(("duplicate-id", "missing-title"))
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w:.-]{2,40})", re.I)
_DOCTYPE = re.compile(r"<!doctype\s+html", re.I)


def check_xml(stream: BinaryIO) -> CheckResult:
    """Well-formed, and valid where the document says itself what it must be like."""
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
        # The document type of SVG 1.0 and 1.1 gives it its namespace; browsers do not read it, other programs
        # do.
        return replace(done, findings=[*done.findings, finding("svg-by-type")])
    if root == "svg":
        return replace(done, findings=[*done.findings, finding("svg-without-namespace")])
    wrong = finding("svg-not-shown", detail="its first element is not svg")
    return CheckResult(validity=Validity.NOT_VALID, findings=[wrong], properties=done.properties)


def check_xml_part(stream: BinaryIO) -> str:
    """What is not well-formed in a part of a document, in words; empty when it is right."""
    error = _read(stream, {})
    return "" if error is None else f"line {error.lineno}: {error.msg}"


def _read(stream: BinaryIO, properties: dict[str, Property]) -> etree.XMLSyntaxError | None:
    seen, head = _Seen(properties), b""
    parser = etree.XMLParser(
        target=seen, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
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
        # that may say what a prefix stands for, as that of the manifests in old office documents does
        return None
    # libxml2 goes on behind a prefix that stands for nothing; other parsers do not
    # (https://www.w3.org/TR/xml-names/).
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
    words, place = str(error.msg or error), f"line {error.lineno}" if error.lineno else ""
    if "entity" in words.lower() and ("amplification" in words or "loop" in words):
        words = f"its entities expand without end ({words})"
    elif any(limit in words for limit in _LIMITS):
        found = finding("nested-too-deep", place=place, detail=words)
        return CheckResult(validity=Validity.NOT_CHECKED, findings=[found], properties=properties)
    if words.startswith("Unsupported encoding"):
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("encoding-unknown", detail=words)],
            properties=properties,
        )
    found = finding("xml-not-well-formed", place=place, detail=words)
    return CheckResult(validity=Validity.NOT_VALID, findings=[found], properties=properties)


def _against_own_type(data: bytes, properties: dict[str, Property]) -> CheckResult:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    document = etree.fromstring(data, parser).getroottree()
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
        return done  # a page that is written as XML is read as such
    document = turbohtml.parse(data)
    errors = [(error.code, error.line) for error in document.errors]
    properties: dict[str, Property] = {"encoding": _encoding(data), "words": len(document.text.split())}
    if cut := [(code, line) for code, line in errors if code.startswith(_CUT_OFF)]:
        findings = [
            finding("html-cut-off", place=f"line {line}", detail=code) for code, line in cut[:MOST_FINDINGS]
        ]
        return CheckResult(validity=Validity.NOT_VALID, findings=findings, properties=properties)
    page = data.decode("latin-1")
    errors += [(words, page.count("\n", 0, at) + 1) for words, at in html_tags.errors_of(page)]
    findings = _told("html-error", errors)
    messages = [
        (each.code, each.line) for each in conformance.check(document).messages if each.severity == "error"
    ]
    findings += _told("html-unfit", [each for each in messages if each[0] in _GRAVE])
    findings += _told("html-remark", [each for each in messages if each[0] not in _GRAVE])
    if "<html" in page[:_CHUNK_BYTES].lower() and not _DOCTYPE.search(page):
        findings += _told("html-unfit", [("it has no document type", 1)])
    unfit = any(each.code == "formats.html-unfit" for each in findings)
    validity = Validity.NOT_VALID if errors else Validity.WELL_FORMED if unfit else Validity.VALID
    return CheckResult(validity=validity, findings=findings[: 2 * MOST_FINDINGS], properties=properties)


def _told(code: str, errors: list[tuple[str, int]]) -> list[Finding]:
    """Each kind of error once, with its first place and how often it comes."""
    places: dict[str, list[int]] = {}
    for words, line in errors:
        places.setdefault(words, []).append(line)
    return [
        finding(
            code,
            place=f"line {lines[0]}" if lines[0] else "",
            detail=words if len(lines) == 1 else f"{words} ({len(lines)} times)",
        )
        for words, lines in list(places.items())[:MOST_FINDINGS]
    ]


def _encoding(data: bytes) -> str:
    """As a browser would take it, from the bytes alone."""
    for mark, name in (
        (codecs.BOM_UTF8, "UTF-8"),
        (codecs.BOM_UTF16_LE, "UTF-16"),
        (codecs.BOM_UTF16_BE, "UTF-16"),
    ):
        if data.startswith(mark):
            return name
    if found := _CHARSET.search(data[:4096]):
        return found[1].decode("ascii").upper()
    if data.isascii():
        return "US-ASCII"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "8-bit"
    return "UTF-8"


class _Seen:
    """Takes the parser's events and keeps the first element and counts, so that memory stays flat."""

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
