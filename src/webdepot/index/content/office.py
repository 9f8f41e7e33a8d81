"""The text of office documents: Word, PowerPoint and Excel (ECMA-376), and OpenDocument text, sheets and
slides (ISO 26300).

Both are ZIP files with XML inside. Only parts with text are opened; their unpacked size is bounded in total,
so that a decompression bomb costs no more than a large document; XML is read as a stream, without entities
and without the network.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import IO

from lxml import etree

from webdepot.text import untrusted_xml

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
"""Local names of elements whose text is one line."""
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
    """The reason why a document has no text."""


def words_of_office(data: bytes, *, limit_chars: int) -> tuple[str, str]:
    """Title and text, at most `limit_chars`; Unread if the file is damaged, encrypted or of another kind."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as document:
            names = document.namelist()
            parts = [name for name in _PARTS if name in names]
            parts += sorted(name for name in names if name.startswith(_SLIDES) and name.endswith(".xml"))[
                :_MOST_PARTS
            ]
            if not parts:
                raise Unread("it contains no text of a known kind")
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
    lines: list[str] = []
    length = 0
    for piece in _pieces(_Bounded(stream, 4 * limit_chars)):
        lines.append(piece)
        length += len(piece)
        if length >= limit_chars:
            break
    return "".join(lines)[:limit_chars]


def _pieces(stream: "_Bounded") -> Iterator[str]:
    """The text of a part, one line for each paragraph, heading or cell."""
    for _, element in etree.iterparse(
        stream, events=("end",), resolve_entities=False, no_network=True, load_dtd=False, recover=True
    ):
        if isinstance(element.tag, str) and etree.QName(element).localname in _LINES:
            yield "".join(element.itertext()) + "\n"
            element.clear(keep_tail=False)
            # Release elements that were read; otherwise a long document would be in memory as a whole.
            while element.getprevious() is not None:
                del element.getparent()[0]


def _title(document: zipfile.ZipFile, names: list[str]) -> str:
    for name in _TITLES:
        if name in names:
            with document.open(name) as stream:
                tree = untrusted_xml.parse(stream.read(100_000), recover=True)
            title = tree.find(".//{http://purl.org/dc/elements/1.1/}title") if tree is not None else None
            if title is not None and title.text:
                return str(title.text)
    return ""


class _Bounded:
    """A stream that ends after `limit_bytes`, however much it unpacks to."""

    def __init__(self, source: IO[bytes], limit_bytes: int) -> None:
        self._source, self._left = source, limit_bytes

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data
