"""XML and HTML.

XML is read to its end as a stream, without entities from outside, without the network and without keeping a tree; well-formed is what
this can say, since no schema is asked. HTML is parsed as browsers do (https://html.spec.whatwg.org/multipage/parsing.html): a page that
ends within a tag, comment or script was cut off; other parse errors are mended by every browser and only noted.
"""

from typing import BinaryIO

from lxml import etree

from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding

LONGEST_HTML_BYTES = 32 << 20
MOST_FINDINGS = 10
_CHUNK_BYTES = 1 << 16
_LIMITS = ("Excessive depth", "huge text node", "Maximum entity amplification", "xmlSAX2Characters: huge", "Buffer size limit", "too long")
_CUT_OFF = "eof-in-"


def check_xml(stream: BinaryIO) -> tuple[Validity, list[Finding]]:
    parser = etree.XMLParser(target=_Nobody(), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        while chunk := stream.read(_CHUNK_BYTES):
            parser.feed(chunk)
        parser.close()
    except etree.XMLSyntaxError as error:
        return _not_well_formed(error)
    return Validity.WELL_FORMED, []


def _not_well_formed(error: etree.XMLSyntaxError) -> tuple[Validity, list[Finding]]:
    words, place = str(error.msg or error), f"line {error.lineno}" if error.lineno else ""
    if "entity" in words.lower() and ("amplification" in words or "loop" in words):
        return Validity.NOT_VALID, [finding("xml-not-well-formed", place=place, detail=f"its entities expand without end ({words})")]
    if any(limit in words for limit in _LIMITS):
        return Validity.NOT_CHECKED, [finding("nested-too-deep", place=place, detail=words)]
    return Validity.NOT_VALID, [finding("xml-not-well-formed", place=place, detail=words)]


def check_html(stream: BinaryIO) -> tuple[Validity, list[Finding]]:
    import turbohtml
    from turbohtml import conformance

    data = stream.read(LONGEST_HTML_BYTES + 1)
    if len(data) > LONGEST_HTML_BYTES:
        return Validity.NOT_CHECKED, [finding("too-large", detail=f"more than {LONGEST_HTML_BYTES} bytes")]
    document = turbohtml.parse(data)
    errors = [(error.code, error.line) for error in document.errors]
    cut = [(code, line) for code, line in errors if code.startswith(_CUT_OFF)]
    if cut:
        return Validity.NOT_VALID, [finding("html-cut-off", place=f"line {line}", detail=code) for code, line in cut[:MOST_FINDINGS]]
    if not errors:
        errors = [(message.code, message.line) for message in conformance.check(document).messages if message.severity == "error"]
    findings = [finding("html-error", place=f"line {line}" if line else "", detail=code) for code, line in errors[:MOST_FINDINGS]]
    return Validity.WELL_FORMED if findings else Validity.VALID, findings


class _Nobody:
    """Takes the parser's events and keeps nothing, so that memory stays flat."""

    def start(self, tag: str, attributes: object) -> None: ...

    def end(self, tag: str) -> None: ...

    def data(self, text: str) -> None: ...

    def comment(self, text: str) -> None: ...

    def close(self) -> None: ...
