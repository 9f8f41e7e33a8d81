"""Read partners' XML without entities and network access; write our XML without characters that XML 1.0
forbids.
"""

import re
from collections.abc import Iterator

from lxml import etree

from webdepot.errors import InputError
from webdepot.text import untrusted_xml

XSI = "http://www.w3.org/2001/XMLSchema-instance"
LONGEST_BYTES = 64 << 20
MOST_NODES = 6_000_000
"""Elements and attributes: each takes up to 200 bytes of memory, and four bytes of XML can be an element."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACES = re.compile(r"\s+")


def parse(data: bytes, *, what: str) -> etree._Element:
    """The root of a document; InputError, with `what` in its message, if it is not well-formed XML, too
    large, or has a document type.
    """
    if len(data) > LONGEST_BYTES:
        raise InputError(f"{what} is larger than {LONGEST_BYTES} bytes.")
    if data.count(b"<") + data.count(b"=") > MOST_NODES:
        raise InputError(f"{what} has more than {MOST_NODES:,} elements and attributes.")
    try:
        root = untrusted_xml.parse_elements(data)
    except ValueError as error:
        raise InputError(f"{what} is not well-formed XML: {error}") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise InputError(f"{what} declares a document type, which is not allowed. Remove it.")
    return root


def add(parent: etree._Element, tag: str, text: str | None = None, /, **attributes: str) -> etree._Element:
    """Add a child with text and attributes, without forbidden characters. `tag` is in Clark notation."""
    child = etree.SubElement(parent, tag, {name: plain(value) for name, value in attributes.items()})
    if text is not None:
        child.text = plain(text)
    return child


def plain(text: str) -> str:
    """The text without characters that XML 1.0 forbids."""
    return _FORBIDDEN.sub("", text)


def text_of(element: etree._Element | None) -> str:
    """All text inside, with single spaces."""
    return "" if element is None else _SPACES.sub(" ", "".join(element.itertext())).strip()


def local(element: etree._Element) -> str:
    """The name without its namespace; empty for comments and processing instructions."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def namespace(element: etree._Element) -> str:
    return (etree.QName(element).namespace or "") if isinstance(element.tag, str) else ""


def children(element: etree._Element, name: str = "") -> Iterator[etree._Element]:
    """Child elements: all, or those with a local name in any namespace."""
    for child in element:
        if isinstance(child.tag, str) and (not name or local(child) == name):
            yield child


def find(element: etree._Element, *path: str) -> etree._Element | None:
    """The first descendant along a path of local names."""
    for name in path:
        following = next(children(element, name), None)
        if following is None:
            return None
        element = following
    return element


def verbatim(element: etree._Element) -> str:
    """An element as a complete XML document."""
    data: str = etree.tostring(element, encoding="unicode", with_tail=False)
    return data
