"""Plain text, style sheets and scripts: are the bytes characters?

UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. The web has much text in older 8-bit encodings, which
no bytes can violate; so text that is not UTF-8 is called damaged only where it clearly was meant to be.
"""

import codecs
import re
from typing import BinaryIO

from webdepot.digest import CHUNK_BYTES
from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding

LOOKED_AT_BYTES = 4 << 20
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_FORBIDDEN = re.compile(
    rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xed[\xa0-\xbf][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}|[\xf5-\xf7][\x80-\xbf]{3}"
)
_CUT = re.compile(rb"(?:[\xe0-\xef][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{1,2})\Z")


def check(stream: BinaryIO) -> tuple[Validity, list[Finding]]:
    head = stream.read(4)
    stream.seek(0)
    encoding = "utf-16" if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"
    decoder = codecs.getincrementaldecoder(encoding)()
    at = 0
    try:
        while chunk := stream.read(CHUNK_BYTES):
            decoder.decode(chunk)
            at += len(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return _not_utf_8(stream, max(0, at - 3) + error.start, error.reason, encoding)
    return Validity.VALID, []


def _not_utf_8(stream: BinaryIO, place: int, reason: str, encoding: str) -> tuple[Validity, list[Finding]]:
    stream.seek(0)
    data = stream.read(LOOKED_AT_BYTES)
    right = len(_MULTIBYTE.findall(data))
    wrong = sum(1 for byte in _MULTIBYTE.sub(b"", data) if byte > 0x7F)
    meant = encoding == "utf-16" or data.startswith(codecs.BOM_UTF8) or right > wrong or _FORBIDDEN.search(data) or _CUT.search(data)
    if meant:
        return Validity.NOT_VALID, [finding("text-damaged", place=str(place), detail=reason)]
    return Validity.WELL_FORMED, [finding("not-utf-8")]
