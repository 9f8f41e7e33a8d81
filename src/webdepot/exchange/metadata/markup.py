"""XML of partners is read without entities and without the network; XML of ours is written without what XML
1.0 cannot hold.
"""

import re
from collections.abc import Iterator

from lxml import etree

from webdepot.errors import InputError

XSI = "http://www.w3.org/2001/XMLSchema-instance"
LONGEST_BYTES = 64 << 20
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACES = re.compile(r"\s+")


def parse(data: bytes, *, what: str) -> etree._Element:
    """The root of a document; InputError, with `what` in its words, when it is no well-formed XML, too large,
    or has a document type.
    """
    if len(data) > LONGEST_BYTES:
        raise InputError(f"{what} is larger than {LONGEST_BYTES} bytes.")
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(f"{what} is no well-formed XML: {error}") from error
    if root is None or root.getroottree().docinfo.internalDTD is not None:
        raise InputError(f"{what} declares a document type; entities are not taken from partners.")
    return root


def add(parent: etree._Element, tag: str, text: str | None = None, /, **attributes: str) -> etree._Element:
    """A child with text and attributes, cleaned. `tag` is in Clark's notation."""
    made = etree.SubElement(parent, tag, {name: plain(value) for name, value in attributes.items()})
    if text is not None:
        made.text = plain(text)
    return made


def plain(text: str) -> str:
    """Without what XML 1.0 cannot hold."""
    return _FORBIDDEN.sub("", text)


def text_of(element: etree._Element | None) -> str:
    """All text inside, with single spaces."""
    return "" if element is None else _SPACES.sub(" ", "".join(element.itertext())).strip()


def local(element: etree._Element) -> str:
    """The name without its namespace; empty for what is no element."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def namespace(element: etree._Element) -> str:
    return (etree.QName(element).namespace or "") if isinstance(element.tag, str) else ""


def children(element: etree._Element, name: str = "") -> Iterator[etree._Element]:
    """Child elements, of one name in any namespace or all."""
    for child in element:
        if isinstance(child.tag, str) and (not name or local(child) == name):
            yield child


def find(element: etree._Element, *path: str) -> etree._Element | None:
    """The first descendant along local names."""
    for name in path:
        following = next(children(element, name), None)
        if following is None:
            return None
        element = following
    return element


def verbatim(element: etree._Element) -> str:
    """An element as XML text that stands alone."""
    data: str = etree.tostring(element, encoding="unicode", with_tail=False)
    return data
