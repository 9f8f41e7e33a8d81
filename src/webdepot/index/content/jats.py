"""The searchable text of an article in JATS (https://jats.nlm.nih.gov/): title, headings, abstract and body.

Entities are not expanded and nothing is loaded. A file that is not JATS has no text here: other XML is data.
"""

import re

from lxml import etree

from webdepot.index.content.html import HtmlWords
from webdepot.index.content.office import Unread
from webdepot.text import untrusted_xml

XML_MIMES = frozenset({"application/xml", "text/xml", "application/jats+xml"})
_MOST_TAGS = 1_000_000
_ROOT = re.compile(rb"<article[\s>]|//NLM//DTD (?:JATS|Journal)")
_HEAD_BYTES = 4096
_TITLES = ("{*}front/{*}article-meta/{*}title-group/{*}article-title", ".//{*}article-title")
_PARTS = ("{*}front/{*}article-meta/{*}abstract", "{*}body", "{*}back")
_BLOCKS = frozenset({"p", "title", "label", "td", "th", "ref", "caption", "list-item", "disp-quote", "sec"})


def words_of_jats(data: bytes) -> HtmlWords | None:
    """Title and text of an article; None if it is something else. Unread if it cannot be parsed."""
    if not _ROOT.search(data, 0, _HEAD_BYTES):
        return None
    if data.count(b"<") > _MOST_TAGS:
        raise Unread(f"it has more than {_MOST_TAGS:,} tags")
    try:
        root = untrusted_xml.parse_elements(data)
    except ValueError as error:
        raise Unread(f"it is not well-formed XML ({error})") from error
    if etree.QName(root).localname != "article":
        return None
    title = next((element for path in _TITLES if (element := root.find(path)) is not None), None)
    headings = [_flat(each) for each in root.iterfind("{*}body//{*}sec/{*}title")]
    text = [line for path in _PARTS if (part := root.find(path)) is not None for line in _lines(part)]
    return HtmlWords(
        title=_flat(title) if title is not None else "", headings="\n".join(headings), text="\n".join(text)
    )


def _flat(element: etree._Element) -> str:
    return " ".join("".join(element.itertext(with_tail=False)).split())


def _lines(part: etree._Element) -> list[str]:
    """The text, with a line for each paragraph, heading, cell or reference."""
    lines = [""]
    for event, element in etree.iterwalk(part, events=("start", "end")):
        is_block = isinstance(element.tag, str) and etree.QName(element).localname in _BLOCKS
        if is_block and lines[-1]:
            lines.append("")
        lines[-1] += (element.text if event == "start" else element.tail) or ""
    return [" ".join(line.split()) for line in lines if line.strip()]
