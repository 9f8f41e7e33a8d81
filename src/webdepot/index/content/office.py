"""Words of office documents: Word, PowerPoint and Excel (ECMA-376), and OpenDocument text, sheets and slides
(ISO 26300).

Both are ZIP files with XML inside. Only the parts that hold text are opened; what they unpack to is bounded
together, so that a bomb costs no more than a large document; XML is read as a stream, without entities and
without the network.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import IO

from lxml import etree

OFFICE_MIMES = frozenset(
    {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.presentation",
        "application/vnd.oasis.opendocument.spreadsheet",
    }
)
_PARTS = ("word/document.xml", "word/footnotes.xml", "xl/sharedStrings.xml", "content.xml")
_SLIDES, _MOST_PARTS = "ppt/slides/slide", 500
_TITLES = ("docProps/core.xml", "meta.xml")
_LINES = frozenset({"p", "h", "si"})
"""Local names of what is a line by itself."""
_DAMAGE = (
    zipfile.BadZipFile,
    etree.XMLSyntaxError,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    KeyError,
)


class Unread(Exception):
    """Why a document has no words, in words."""


def words_of_office(data: bytes, *, limit_chars: int) -> tuple[str, str]:
    """Title and text, at most so many characters; Unread where the file is damaged, encrypted or no such
    document.
    """
    try:
        with zipfile.ZipFile(BytesIO(data)) as document:
            names = document.namelist()
            parts = [name for name in _PARTS if name in names]
            parts += sorted(name for name in names if name.startswith(_SLIDES) and name.endswith(".xml"))[
                :_MOST_PARTS
            ]
            if not parts:
                raise Unread("there is no text of a known kind in it")
            text, left = [], limit_chars
            for name in parts:
                with document.open(name) as stream:
                    text.append(_text(stream, left))
                left -= len(text[-1])
                if left <= 0:
                    break
            return _title(document, names), "\n".join(text)
    except _DAMAGE as error:
        raise Unread(f"the document is damaged or encrypted ({str(error)[:100]})") from error


def _text(stream: IO[bytes], limit_chars: int) -> str:
    found: list[str] = []
    length = 0
    for piece in _pieces(_Bounded(stream, 4 * limit_chars)):
        found.append(piece)
        length += len(piece)
        if length >= limit_chars:
            break
    return "".join(found)[:limit_chars]


def _pieces(stream: "_Bounded") -> Iterator[str]:
    """Line by line: paragraphs, headings, cells."""
    for _, element in etree.iterparse(
        stream, events=("end",), resolve_entities=False, no_network=True, load_dtd=False, recover=True
    ):
        if isinstance(element.tag, str) and etree.QName(element).localname in _LINES:
            yield "".join(element.itertext()) + "\n"
            element.clear(keep_tail=False)
            # Elements that were read are let go of, or a long document would be held whole.
            while element.getprevious() is not None:
                del element.getparent()[0]


def _title(document: zipfile.ZipFile, names: list[str]) -> str:
    for name in _TITLES:
        if name in names:
            with document.open(name) as stream:
                tree = etree.fromstring(
                    stream.read(100_000),
                    etree.XMLParser(resolve_entities=False, no_network=True, recover=True),
                )
            found = tree.find(".//{http://purl.org/dc/elements/1.1/}title") if tree is not None else None
            if found is not None and found.text:
                return str(found.text)
    return ""


class _Bounded:
    """A stream that ends after so many bytes, whatever it unpacks to."""

    def __init__(self, source: IO[bytes], limit_bytes: int) -> None:
        self._source, self._left = source, limit_bytes

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data
