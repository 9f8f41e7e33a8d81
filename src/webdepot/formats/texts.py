"""All findings about formats, with severity, message and recommended action: one table, for translation."""

from collections.abc import Mapping
from dataclasses import dataclass

from webdepot.model import Finding, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class FormatFindingText:
    severity: Severity
    words: str
    action: str = ""


TEXTS: Mapping[str, FormatFindingText] = {
    "empty": FormatFindingText(_NOTE, "The file is empty."),
    "content-cut": FormatFindingText(
        _WARNING,
        "Unpacked, the file is larger than {limit} bytes; only its beginning was checked.",
        "Raise the limit if the file matters.",
    ),
    "digest-differs": FormatFindingText(
        _WARNING, "The record states the payload digest {stated}, but its content has {found}."
    ),
    "gave-up-time": FormatFindingText(
        _WARNING,
        "The check was stopped after {limit} seconds.",
        "Check the file by hand: it may have been made to block programs.",
    ),
    "gave-up-memory": FormatFindingText(
        _WARNING, "The check was stopped because it needed too much memory.", "Check the file by hand."
    ),
    "identify-gave-up": FormatFindingText(
        _WARNING,
        "Identification did not finish ({detail}); only the first bytes of the file were examined.",
        "Check the file by hand.",
    ),
    "checker-died": FormatFindingText(
        _WARNING,
        "The checking library crashed ({detail}).",
        "Check the file by hand.",
    ),
    "too-large": FormatFindingText(_NOTE, "The file is too large for this check ({detail})."),
    "nested-too-deep": FormatFindingText(_WARNING, "The file is nested too deeply to be read ({detail})."),
    "expands-without-end": FormatFindingText(
        _WARNING,
        "The file unpacks to more than {limit} bytes and may be a decompression bomb.",
        "Do not unpack it without a limit.",
    ),
    "encrypted": FormatFindingText(
        _WARNING,
        "The file is encrypted and cannot be read without a password.",
        "Ask the owner for a copy without encryption.",
    ),
    "not-utf-8": FormatFindingText(_NOTE, "The text is not UTF-8; an older 8-bit encoding is assumed."),
    "text-damaged": FormatFindingText(_ERROR, "The text is UTF-8 except at {place}: {detail}."),
    "xml-not-well-formed": FormatFindingText(_ERROR, "The XML is not well-formed: {detail}."),
    "encoding-unknown": FormatFindingText(_NOTE, "This check does not support the encoding: {detail}."),
    "json-not-valid": FormatFindingText(_ERROR, "The JSON is not valid: {detail}."),
    "json-names-repeated": FormatFindingText(_NOTE, "A name occurs twice in one object: {detail}."),
    "html-cut-off": FormatFindingText(_ERROR, "The page ends in the middle of its markup: {detail}."),
    "html-error": FormatFindingText(_WARNING, "The markup has an error that browsers correct: {detail}."),
    "html-unfit": FormatFindingText(_NOTE, "The page does not conform to HTML: {detail}."),
    "html-remark": FormatFindingText(_NOTE, "The page does not conform to HTML: {detail}."),
    "css-error": FormatFindingText(_WARNING, "The style sheet has an error that browsers correct: {detail}."),
    "svg-not-shown": FormatFindingText(_ERROR, "Browsers do not display it as SVG: {detail}."),
    "svg-by-type": FormatFindingText(
        _NOTE, "Its elements are SVG only by its document type, which browsers ignore."
    ),
    "svg-without-namespace": FormatFindingText(
        _WARNING, "Browsers do not display it: its root element is not in the SVG namespace."
    ),
    "not-supported": FormatFindingText(
        _NOTE, "This check does not support this variant of the format ({detail})."
    ),
    "mp3-cut-off": FormatFindingText(_WARNING, "Its last frame is cut off; players ignore that."),
    "xml-not-valid": FormatFindingText(_ERROR, "The XML does not conform to its document type: {detail}."),
    "image-damaged": FormatFindingText(_ERROR, "The image cannot be displayed completely: {detail}."),
    "image-cut-off": FormatFindingText(_ERROR, "The image ends before its end marker."),
    "trailing-bytes": FormatFindingText(_NOTE, "{detail} bytes follow after the end of the file."),
    "image-other-kind": FormatFindingText(
        _ERROR, "The image is {detail}, not the format that its signature indicates."
    ),
    "pdf-damaged": FormatFindingText(_ERROR, "The PDF is damaged: {detail}."),
    "pdf-problem": FormatFindingText(_WARNING, "The PDF has an error that PDF readers correct: {detail}."),
    "zip-damaged": FormatFindingText(_ERROR, "The ZIP is damaged: {detail}."),
    "gzip-damaged": FormatFindingText(_ERROR, "The gzip file is damaged: {detail}."),
    "part-not-well-formed": FormatFindingText(
        _ERROR, "A part of the document is not well-formed XML: {detail}."
    ),
    "document-damaged": FormatFindingText(_ERROR, "The document is damaged: {detail}."),
    "aiff-damaged": FormatFindingText(_ERROR, "The AIFF file is damaged: {detail}."),
    "mp3-damaged": FormatFindingText(_ERROR, "The MPEG audio file is damaged: {detail}."),
    "film-damaged": FormatFindingText(_ERROR, "The video is damaged: {detail}."),
    "ogg-damaged": FormatFindingText(_ERROR, "The Ogg file is damaged: {detail}."),
    "stream-unended": FormatFindingText(
        _NOTE, "A stream in the file has no end marker; it may be cut off or recorded live."
    ),
    "font-damaged": FormatFindingText(_ERROR, "The font is damaged: {detail}."),
    "wave-damaged": FormatFindingText(_ERROR, "The WAVE file is damaged: {detail}."),
}


def finding(code: str, *, subject: str = "", place: str = "", **facts: object) -> Finding:
    """The finding with that code in English; `facts` fill the placeholders of its message."""
    text = TEXTS[code]
    values = {name: _shorten(value) for name, value in facts.items()}
    message = text.words.format(**{"place": place} | values)
    return Finding(
        code=f"formats.{code}",
        severity=text.severity,
        subject=subject,
        message=message,
        place=place,
        action=text.action,
    )


def _shorten(value: object) -> str:
    """The value in at most 300 characters: error messages of libraries can be as long as the file."""
    text = " ".join(str(value).split()).rstrip(".")
    return text if len(text) <= 300 else f"{text[:299]}…"
