"""Validation: whether a file of a known format is complete and conforms to that format, and its properties.

The identified format decides which check runs; checks are never tried one after another. The result uses the
terms of JHOVE: valid, well-formed, not valid; and not checked if there is no check or it gave up. Checks read
hostile bytes with large libraries, so `examine` runs them in a child process with limits; call `check`
directly only for trusted files.
"""

import io
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from webdepot.formats import media
from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Validity
from webdepot.model import Format, FormatVerdict

Check = Callable[[BinaryIO], CheckResult]


def check(payload: bytes | Path | BinaryIO, format: Format, *, subject: str = "") -> CheckResult:
    """Whether the payload conforms to its format, with findings about `subject`; not checked if there is no
    check for the format.
    """
    chosen = find_check(format)
    if chosen is None:
        return CheckResult(validity=Validity.NOT_CHECKED)
    with _opened(payload) as stream:
        if not stream.read(1):
            return CheckResult(validity=Validity.NOT_CHECKED, findings=[finding("empty", subject=subject)])
        stream.seek(0)
        done = chosen(stream)
    return replace(done, findings=[replace(each, subject=subject) for each in done.findings])


def _opened(payload: bytes | Path | BinaryIO) -> AbstractContextManager[BinaryIO]:
    if isinstance(payload, bytes):
        return io.BytesIO(payload)
    return payload.open("rb") if isinstance(payload, Path) else nullcontext(payload)


def has_check(format: Format) -> bool:
    return _choose(format) is not None


def find_check(format: Format) -> Check | None:
    """The function that checks files of the format. Its library is imported only now, so that a child process
    starts quickly.
    """
    chosen = _choose(format)
    if chosen is None:
        return None
    module, name, options = chosen
    return partial(getattr(import_module(f"webdepot.formats.validators.{module}"), name), **options)


def _choose(format: Format) -> tuple[str, str, dict[str, str]] | None:
    """Module, function and further arguments of the check."""
    if format.verdict is FormatVerdict.NOT_RECOGNISED:
        return None
    if format.puid in _BY_PUID:
        return (*_BY_PUID[format.puid], {})
    mime = media.canonical(format.mime)
    if mime in _IMAGES:
        return "image", "check", {"kind": _IMAGES[mime]}
    if mime == "image/svg+xml":
        return None if "Compressed" in format.name else ("markup", "check_svg", {})
    # Servers and browsers treat XHTML as a kind of HTML, but it must be XML.
    if format.mime == "application/xhtml+xml" or media.is_xml(mime):
        return "markup", "check_xml", {}
    if mime.startswith(_DOCUMENTS):
        return "zip_archive", "check_document", {}
    return (*_CHECKS[mime], {}) if mime in _CHECKS else None


_IMAGES = {
    "image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP", "image/tiff": "TIFF",
    "image/bmp": "BMP", "image/x-icon": "ICO", "image/jp2": "JPEG2000", "image/jpx": "JPEG2000",
    "image/x-jp2-codestream": "JPEG2000",
}  # fmt: skip
_DOCUMENTS = (
    "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.",
    "application/epub+zip", "application/vnd.ms-word.document.macroenabled",
    "application/vnd.ms-excel.sheet.macroenabled", "application/vnd.ms-powerpoint.presentation.macroenabled",
)  # fmt: skip
_CHECKS = {
    "text/plain": ("text", "check"),
    "text/css": ("css", "check"),
    "text/csv": ("text", "check"),
    "text/markdown": ("text", "check"),
    "application/javascript": ("text", "check"),
    "text/html": ("markup", "check_html"),
    "application/json": ("json_text", "check_json"),
    "application/geo+json": ("json_text", "check_json"),
    "application/ld+json": ("json_text", "check_json"),
    "application/pdf": ("pdf", "check_pdf"),
    "application/zip": ("zip_archive", "check_zip"),
    "application/java-archive": ("zip_archive", "check_zip"),
    "application/gzip": ("zip_archive", "check_gzip"),
    "audio/x-wav": ("wave_aiff", "check_wave"),
    "audio/x-aiff": ("wave_aiff", "check_aiff"),
    "audio/mpeg": ("mpeg_audio", "check"),
    "video/mp4": ("mp4", "check"),
    "video/quicktime": ("mp4", "check"),
    "video/3gpp": ("mp4", "check"),
    "video/webm": ("matroska", "check"),
    "application/ogg": ("ogg", "check"),
    "font/woff": ("fonts", "check"),
    "font/woff2": ("fonts", "check"),
    "font/ttf": ("fonts", "check"),
    "font/otf": ("fonts", "check"),
    "application/vnd.ms-fontobject": ("fonts", "check"),
}
_BY_PUID = {
    "fmt/414": ("wave_aiff", "check_aiff"),
    "fmt/569": ("matroska", "check"),
    "fmt/573": ("matroska", "check"),
    "fmt/520": ("fonts", "check"),
    "x-fmt/453": ("fonts", "check"),
    "x-fmt/384": ("mp4", "check"),
    "x-fmt/135": ("wave_aiff", "check_aiff"),
    "x-fmt/136": ("wave_aiff", "check_aiff"),
}
"""Formats whose media type is missing in PRONOM, or differs between releases."""
