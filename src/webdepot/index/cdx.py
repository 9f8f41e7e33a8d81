"""CDX: the capture index as columns of text, in its two usual forms
(https://iipc.github.io/warc-specifications/specifications/cdx-format/).

     CDX N b a m s k r M S V g        11 columns: key, date, address, type, status, digest, redirect,
                                      meta tags, length, offset, file
     CDX N b a m s k r V g             9 columns: without meta tags and length

OutbackCDX also writes 14 columns without naming them: those 11, and where a revisit has its original, which
is found by its digest here. Its lines `@alias ADDRESS ADDRESS` are left out.

The first line names the columns. SHA-1 digests in base 32 have no label; `-` means nothing.
"""

from collections.abc import Iterable, Iterator

from webdepot.cdxj import REVISIT_MIME, whole_number
from webdepot.errors import InputError
from webdepot.model import Capture, Location, RecordKind
from webdepot.url import key as key_of

HEADS = {9: " CDX N b a m s k r V g", 11: " CDX N b a m s k r M S V g"}
_NEEDED = frozenset("abVg")
_OF_OUTBACKCDX = 14


_NOT_CAPTURES = frozenset({"warc/request", "warc/metadata", "warc/warcinfo"})
"""webarchive-commons lists these records, too."""


def line(capture: Capture, columns: int) -> str:
    """The line of a capture in 9 or 11 columns, without line end."""
    is_revisit = capture.kind is RecordKind.REVISIT
    place = capture.location
    values = [
        capture.key,
        capture.timestamp,
        _column(capture.url),
        REVISIT_MIME if is_revisit else _column(capture.mime),
        str(capture.status) if capture.status else "-",
        _column(capture.digest.removeprefix("sha1:")),
        _column(capture.redirect),
        *(("-", str(place.length)) if columns == 11 else ()),
        str(place.offset),
        _column(place.container),
    ]
    return " ".join(values)


def read(lines: Iterable[str], *, name: str) -> Iterator[Capture]:
    """Captures of CDX lines in their order; InputError names the invalid line. Length 0 if there is no such
    column.
    """
    letters: list[str] = []
    for number, text in enumerate(lines, start=1):
        if text.startswith((" CDX ", "CDX ")):
            letters = text.split()[1:]
            if not set(letters) >= _NEEDED:
                raise InputError(
                    f"{name}, line {number}: the columns {' '.join(letters)[:100]!r} lack one of a, b, V, g."
                )
        elif text.strip() and not text.startswith("@alias "):
            letters = letters or _guess_columns(text, name, number)
            capture = _parse(text, letters, name, number)
            if capture.mime not in _NOT_CAPTURES:
                yield capture


def _guess_columns(text: str, name: str, number: int) -> list[str]:
    count = len(text.split())
    if count == _OF_OUTBACKCDX:
        count = 11
    if count not in HEADS:
        raise InputError(
            f"{name}, line {number} has {count} columns, and no line before it names them. "
            f"Begin the file with {HEADS[11]!r}."
        )
    return HEADS[count].split()[1:]


def _parse(text: str, letters: list[str], name: str, number: int) -> Capture:
    fields = dict(zip(letters, ("" if word == "-" else word for word in text.split()), strict=False))
    try:
        timestamp, url = fields["b"], fields["a"]
        if len(timestamp) != 14 or not (timestamp.isascii() and timestamp.isdigit()):
            raise ValueError("no timestamp")
        place = Location(
            container=fields["g"],
            offset=whole_number(fields["V"]),
            length=whole_number(fields.get("S") or "0"),
        )
    except (KeyError, ValueError) as error:
        raise InputError(f"{name}, line {number} is not CDX: {text[:100].strip()!r}") from error
    mime, digest, status = fields.get("m", ""), fields.get("k", ""), fields.get("s", "")
    return Capture(
        # Our own key: keys of other tools differ slightly, and a lookup must find it.
        key=key_of(url),
        timestamp=timestamp,
        url=url,
        kind=RecordKind.REVISIT if mime == REVISIT_MIME else RecordKind.RESPONSE,
        status=int(status) if status.isascii() and status.isdigit() and len(status) < 5 else 0,
        mime=mime or "unk",
        digest=f"sha1:{digest}" if len(digest) == 32 and ":" not in digest else digest,
        location=place,
        redirect=fields.get("r", ""),
    )


def _column(text: str) -> str:
    """The text of a column, without spaces."""
    return "".join(char if char > " " else f"%{ord(char):02X}" for char in text) or "-"
