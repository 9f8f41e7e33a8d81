"""Plain text and scripts: check the encoding, and count words and lines.

UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. Much text on the web is in older
8-bit encodings, in which any bytes are valid; so text that is not UTF-8 counts as damaged only if it was
clearly meant to be UTF-8.
"""

import codecs
import re
from typing import BinaryIO

from webdepot.digest import CHUNK_BYTES
from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity, judge

LOOKED_AT_BYTES = 4 << 20
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_FORBIDDEN = re.compile(
    rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xed[\xa0-\xbf][\x80-\xbf]"
    rb"|\xf0[\x80-\x8f][\x80-\xbf]{2}|[\xf5-\xf7][\x80-\xbf]{3}"
)
_CUT = re.compile(rb"(?:[\xe0-\xef][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{1,2})\Z")
_HIGH = bytes(range(0x80, 0x100))
_FEW, _MUCH = 16, 0.2
# Characters that no language has between letters in its 8-bit encoding: quotation marks, the euro sign, and y
# with diaeresis.
_ODD = re.compile(
    rb"(?<=[A-Za-z ])[\x80-\x84\x86-\x89\x8b\x8d\x8f-\x91\x93-\x95\x98\x99\x9b\x9d\xfe\xff](?=[A-Za-z])"
)


def check(stream: BinaryIO) -> CheckResult:
    head = stream.read(4)
    stream.seek(0)
    encoding = "utf-16" if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"
    decoder = codecs.getincrementaldecoder(encoding)()
    at, words, lines, in_word, is_ascii = 0, 0, 0, False, True
    try:
        while True:
            chunk = stream.read(CHUNK_BYTES)
            is_ascii = is_ascii and chunk.isascii()
            text = decoder.decode(chunk, final=not chunk)
            words += len(text.split()) - (in_word and text[:1] != "" and not text[:1].isspace())
            lines += text.count("\n")
            in_word = not text[-1:].isspace() if text else in_word
            at += len(chunk)
            if not chunk:
                break
    except UnicodeDecodeError as error:
        return _not_utf_8(stream, max(0, at - 3) + error.start, error.reason, encoding)
    name = "US-ASCII" if is_ascii else encoding.upper()
    return judge([], {"encoding": name, "words": words, "lines": lines + 1})


def _not_utf_8(stream: BinaryIO, place: int, reason: str, encoding: str) -> CheckResult:
    stream.seek(0)
    data = stream.read(LOOKED_AT_BYTES)
    rest, right = _MULTIBYTE.subn(b"", data)
    wrong = len(rest) - len(rest.translate(None, _HIGH))
    high = len(data) - len(data.translate(None, _HIGH))
    # East Asian encodings look like broken UTF-8 everywhere; damage is in one place.
    is_other = (
        encoding == "utf-8" and not data.startswith(codecs.BOM_UTF8) and high > _FEW and wrong > high * _MUCH
    )
    meant = (
        encoding == "utf-16"
        or data.startswith(codecs.BOM_UTF8)
        or right > wrong
        or _FORBIDDEN.search(data)
        or _CUT.search(data)
    )
    if not is_other and (meant or (_ODD.search(data) and wrong <= 3)):
        return judge(
            [finding("text-damaged", place=f"byte {place}", detail=reason)], {"encoding": encoding.upper()}
        )
    properties: dict[str, Property] = {
        "encoding": "8-bit",
        "words": len(data.split()),
        "lines": data.count(b"\n") + 1,
    }
    return CheckResult(validity=Validity.WELL_FORMED, findings=[finding("not-utf-8")], properties=properties)
