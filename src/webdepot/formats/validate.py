"""Validation: is a file of a known format whole and right by the rules of that format?

The check is chosen by the identified format, never by trial, and answers with the words of JHOVE: valid, well-formed, not valid,
and not checked where there is no check or it had to give up. Checks read hostile bytes with large libraries, so the survey runs
them in a child process with limits (`guard`); calling `check` directly is for files that one trusts to end.
"""

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from webdepot.formats import media
from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding, Format, FormatVerdict

Result = tuple[Validity, list[Finding]]
Check = Callable[[BinaryIO], Result]


def check(payload: bytes | Path, format: Format, *, subject: str = "") -> Result:
    """Whether the payload is what its format demands, with findings about `subject`; not checked where no check exists."""
    chosen = find_check(format)
    if chosen is None:
        return Validity.NOT_CHECKED, []
    with io.BytesIO(payload) if isinstance(payload, bytes) else payload.open("rb") as stream:
        if not stream.read(1):
            return Validity.NOT_CHECKED, [finding("empty", subject=subject)]
        stream.seek(0)
        validity, findings = chosen(stream)
    return validity, [replace(each, subject=subject) for each in findings]


def has_check(format: Format) -> bool:
    return _choose(format) is not None


def find_check(format: Format) -> Check | None:
    """The function that checks files of the format. Its library is imported now: a child that sees only text starts much quicker."""
    chosen = _choose(format)
    if chosen is None:
        return None
    module, name, options = chosen
    return partial(getattr(import_module(f"webdepot.formats.validators.{module}"), name), **options)


def _choose(format: Format) -> tuple[str, str, dict[str, str]] | None:
    """Module, function and further arguments of the check."""
    if format.verdict is FormatVerdict.NOT_RECOGNISED:
        return None
    mime = media.canonical(format.mime)
    if mime in _IMAGES:
        return "image", "check", {"kind": _IMAGES[mime]}
    # XHTML counts as a kind of HTML for servers and browsers, but promises to be XML.
    if format.mime in ("application/xhtml+xml", "image/svg+xml") or media.is_xml(mime):
        return "markup", "check_xml", {}
    if mime.startswith(_DOCUMENTS):
        return "packed", "check_document", {}
    return (*_CHECKS[mime], {}) if mime in _CHECKS else None


_IMAGES = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP", "image/tiff": "TIFF", "image/bmp": "BMP"}
_DOCUMENTS = ("application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.", "application/epub+zip")
_CHECKS = {
    "text/plain": ("text", "check"),
    "text/css": ("text", "check"),
    "text/csv": ("text", "check"),
    "application/javascript": ("text", "check"),
    "text/html": ("markup", "check_html"),
    "application/json": ("structured", "check_json"),
    "application/pdf": ("document", "check_pdf"),
    "application/zip": ("packed", "check_zip"),
    "application/gzip": ("packed", "check_gzip"),
    "audio/x-wav": ("sound", "check_wave"),
}
