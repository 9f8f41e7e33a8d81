"""Formats: recognition by the first bytes, and the check of every format that has one.

The first byte of the input chooses the format.
"""

from webdepot.formats import identify, validate
from webdepot.model import Basis, Format, FormatVerdict

_MIMES = sorted(
    {*validate._IMAGES, *validate._CHECKS, "image/svg+xml", "application/xhtml+xml", "application/epub+zip"}
)
TOKENS = (
    *(bytes([number]) for number in range(len(_MIMES))), b"\x89PNG\r\n\x1a\n", b"\0\0\0\rIHDR", b"IDAT",
    b"IEND", b"\xff\xd8\xff\xe0", b"\xff\xda", b"GIF89a", b"RIFF", b"WEBPVP8 ", b"II*\0", b"MM\0*", b"BM",
    b"\0\0\x01\0", b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51", b"%PDF-1.4", b"OggS", b"ID3", b"\xff\xfb\x90",
    b"ftypisom", b"moov", b"\x1aE\xdf\xa3", b"wOFF", b"wOF2", b"\0\x01\0\0", b"OTTO", b"WAVEfmt ", b"FORM",
    b"AIFF", b"PK\x03\x04", b"\x1f\x8b\x08", b"<svg", b"<?xml ", b"<!DOCTYPE html>", b"{", b"[",
    b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff",
)  # fmt: skip


def one_input(data: bytes) -> None:
    if not data:
        return
    mime, payload = _MIMES[data[0] % len(_MIMES)], data[1:]
    identify.quick_look(payload, name="a.bin", mime=mime)
    chosen = Format(
        puid="", name="", version="", mime=mime, basis=Basis.SIGNATURE, verdict=FormatVerdict.RECOGNISED
    )
    validate.check(payload, chosen, subject="fuzz")
