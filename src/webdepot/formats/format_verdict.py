"""Decide the format of a file from the evidence: signature matches, first bytes, name and server.

1. One signature of PRONOM matched: recognised. XML is examined further, since its signature also matches SVG,
   XHTML and feeds.
2. Several matched: uncertain; the first is used and the others are named.
3. None matched: guess from the bytes (`sniff`). Markup and JSON are recognised by their bytes alone. Style
   sheets and scripts need a name or a server that says so, and bytes that do not contradict it. Truncated
   images are uncertain, with the reason.
4. Otherwise the extension (uncertain; if the bytes do not begin like that format, its check reports what is
   wrong), plain text (recognised if name or server agree), the server alone (uncertain), or nothing.

The warning says if the server stated another type, or, without a server, if the name is that of another
format. Everything here is a pure function of its arguments.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from webdepot.formats import media, sniff
from webdepot.formats.sniff import FormatGuess
from webdepot.model import Basis, Format, FormatVerdict

XML_PUID = "fmt/101"
TEXT_PUID = "x-fmt/111"
_ONLY_FRAMES = frozenset(("fmt/1886",))
"""RIFF is only a container format; the content decides."""
DYNAMIC = frozenset(
    (
        "php",
        "php3",
        "php4",
        "php5",
        "phtml",
        "asp",
        "aspx",
        "ashx",
        "jsp",
        "jspx",
        "do",
        "action",
        "cgi",
        "pl",
        "cfm",
        "py",
        "rb",
        "shtml",
    )
)
"""Extensions of programs on the server: they say nothing about the format of the output."""
_CSS = ("x-fmt/224", "Cascading Style Sheet", "text/css")
_JS = ("x-fmt/423", "JavaScript file", "application/javascript")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureMatch:
    """One match of the signature engine."""

    puid: str
    name: str
    version: str
    mime: str
    basis: Basis
    is_named_otherwise: bool = False
    """The extension is not one of this format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    matches: Sequence[SignatureMatch]
    head: bytes
    """The first `sniff.HEAD_BYTES` bytes, or more."""
    size_bytes: int
    extension: str
    """Lower case without the dot; empty if there is none or it says nothing."""
    mime: str
    """The media type from the server, without parameters; may be empty."""


def resolve(evidence: Evidence) -> Format:
    """The format, with its basis, verdict and warning."""
    format = _resolve(evidence)
    stated = evidence.mime
    if media.agree(stated, format.mime) or format.verdict is FormatVerdict.NOT_RECOGNISED:
        return format
    # Reports search stored warnings for these words.
    return replace(format, warning="; ".join(filter(None, (format.warning, f"the server said {stated}"))))


def _resolve(evidence: Evidence) -> Format:
    if evidence.size_bytes == 0:
        return _nothing("the file is empty")
    strong = [match for match in evidence.matches if match.basis in (Basis.SIGNATURE, Basis.CONTAINER)]
    if strong:
        return _of_signatures(strong, evidence)
    if seen := sniff.binary(evidence.head):
        sure = seen.whole and (_extension_agrees(evidence, seen.mime) or _server_says(evidence, seen.mime))
        return _of_looks(seen, Basis.SIGNATURE, FormatVerdict.RECOGNISED if sure else FormatVerdict.UNCERTAIN)
    text = sniff.text_of(evidence.head)
    named = _NAMED.get(evidence.extension)
    if named and (
        text is None
        or not (sniff.markup(text) or sniff.json_text(text, is_all=evidence.size_bytes <= len(evidence.head)))
    ):
        # Its beginning is damaged, or the name is wrong. An error page that a server sends under the name of
        # an image is not such a case: it is markup.
        looks = FormatGuess(
            puid="",
            name=named[0],
            mime=named[1],
            because="its name says so, but its first bytes do not match",
        )
        return _of_looks(looks, Basis.EXTENSION, FormatVerdict.UNCERTAIN)
    if text is not None:
        return _of_text(text, evidence)
    if evidence.matches:
        because = (
            "only a part of it is text"
            if evidence.matches[0].basis is Basis.TEXT
            else "known only by its extension"
        )
        return _of_match(evidence.matches[0], FormatVerdict.UNCERTAIN, because)
    return _of_server(evidence) or _nothing("neither signatures nor name nor server identify it")


def _of_signatures(strong: list[SignatureMatch], evidence: Evidence) -> Format:
    first = strong[0]
    if len(strong) > 1:
        others = ", ".join(match.puid for match in strong[1:6])
        return _of_match(first, FormatVerdict.UNCERTAIN, f"signatures of other formats also match: {others}")
    if first.puid in _ONLY_FRAMES and (inside := sniff.binary(evidence.head)):
        return _of_looks(inside, Basis.SIGNATURE, FormatVerdict.UNCERTAIN)
    if (
        first.puid == XML_PUID
        and (text := sniff.text_of(evidence.head))
        and (seen := sniff.markup(text))
        and seen.mime != "application/xml"
    ):
        if seen.mime == "image/svg+xml":
            return _of_looks(seen, Basis.SIGNATURE, FormatVerdict.RECOGNISED)
        # The kind of XML decides how it is checked and displayed; PRONOM's identifier is kept.
        return replace(_of_match(first, FormatVerdict.RECOGNISED, ""), mime=seen.mime)
    return _of_match(first, FormatVerdict.RECOGNISED, _of_name(first, evidence))


def _of_name(match: SignatureMatch, evidence: Evidence) -> str:
    """A warning if the name is that of another format and there is no media type from a server; else empty.
    Unknown extensions give no warning.
    """
    named = _NAMED.get(evidence.extension)
    return (
        f"its name is that of {named[0]}" if named and match.is_named_otherwise and not evidence.mime else ""
    )


def _of_text(text: str, evidence: Evidence) -> Format:
    seen = None if _is_code(evidence, text) else sniff.markup(text, expects_xml=_expects_xml(evidence))
    if seen and seen.loose and evidence.extension in _MIXED:
        seen = None
    seen = seen or sniff.json_text(text, is_all=evidence.size_bytes <= len(evidence.head))
    if seen:
        return _of_looks(seen, Basis.TEXT, FormatVerdict.RECOGNISED)
    for (puid, name, mime), looks in ((_CSS, sniff.is_css), (_JS, sniff.is_javascript)):
        if _extension_agrees(evidence, mime) or _server_says(evidence, mime):
            code = FormatGuess(
                puid=puid,
                name=name,
                mime=mime,
                because="the name or server says so and the syntax does not contradict it",
            )
            if looks(text):
                return _of_looks(code, Basis.TEXT, FormatVerdict.RECOGNISED)
            basis = Basis.EXTENSION if _extension_agrees(evidence, mime) else Basis.SERVER
            return replace(
                _of_looks(code, basis, FormatVerdict.UNCERTAIN), warning="its syntax does not confirm it"
            )
    named = next((match for match in evidence.matches if match.puid != TEXT_PUID), None)
    if named:
        # The extension names a kind of text, and the bytes are text.
        return _of_match(named, FormatVerdict.UNCERTAIN, "known only by its extension")
    plain = FormatGuess(
        puid=TEXT_PUID, name="Plain Text File", mime="text/plain", because="all of it is text"
    )
    sure = evidence.extension in ("txt", "text", "log", "asc") or evidence.mime.startswith("text/plain")
    return replace(
        _of_looks(plain, Basis.TEXT, FormatVerdict.RECOGNISED if sure else FormatVerdict.UNCERTAIN),
        warning="" if sure else "it is text of an unknown kind",
    )


def _is_code(evidence: Evidence, text: str) -> bool:
    """Whether it is a script or style sheet that begins with an HTML comment mark, which browsers ignore."""
    return text.lstrip().startswith("<!--") and any(
        _server_says(evidence, mime) for mime in ("text/css", "application/javascript")
    )


def _expects_xml(evidence: Evidence) -> bool:
    return evidence.extension in (
        "xml",
        "rss",
        "atom",
        "rdf",
        "xsl",
        "xslt",
        "xsd",
        "kml",
        "gpx",
    ) or media.is_xml(evidence.mime)


def _extension_agrees(evidence: Evidence, mime: str) -> bool:
    return evidence.extension in _EXTENSIONS.get(media.canonical(mime), ())


def _server_says(evidence: Evidence, mime: str) -> bool:
    return bool(evidence.mime) and media.canonical(evidence.mime) == media.canonical(mime)


_MIXED = frozenset(("md", "markdown", "mdown", "rst", "txt", "adoc", "textile", "wiki"))
"""Text formats that may contain fragments of HTML, also at the beginning."""
_EXTENSIONS = {
    "text/css": ("css",),
    "application/javascript": ("js", "mjs", "cjs"),
    "image/x-icon": ("ico", "cur"),
    "audio/mpeg": ("mp3", "mp2", "mpga"),
    "application/vnd.ms-fontobject": ("eot",),
}


_NAMED = {
    "pdf": ("Portable Document Format", "application/pdf"),
    "png": ("Portable Network Graphics", "image/png"),
    "gif": ("Graphics Interchange Format", "image/gif"),
    "jpg": ("JPEG", "image/jpeg"),
    "jpeg": ("JPEG", "image/jpeg"),
    "tif": ("Tagged Image File Format", "image/tiff"),
    "tiff": ("Tagged Image File Format", "image/tiff"),
    "jp2": ("JPEG 2000", "image/jp2"),
    "webp": ("WebP", "image/webp"),
    "wav": ("Waveform Audio", "audio/x-wav"),
    "aif": ("Audio Interchange File Format", "audio/x-aiff"),
    "aiff": ("Audio Interchange File Format", "audio/x-aiff"),
    "mp3": ("MPEG 1/2 Audio Layer 3", "audio/mpeg"),
    "mp4": ("MPEG-4 Media File", "video/mp4"),
    "webm": ("WebM", "video/webm"),
    "ogg": ("Ogg", "application/ogg"),
    "zip": ("ZIP Format", "application/zip"),
    "docx": (
        "Microsoft Word for Windows",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    "xlsx": (
        "Microsoft Excel for Windows",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    "pptx": (
        "Microsoft Powerpoint for Windows",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    "odt": ("OpenDocument Text", "application/vnd.oasis.opendocument.text"),
    "epub": ("ePub format", "application/epub+zip"),
    "gz": ("GZIP Format", "application/gzip"),
    "ttf": ("TrueType Font", "font/ttf"),
    "otf": ("OpenType Font File", "font/otf"),
    "woff": ("WOFF (Web Open Font Format)", "font/woff"),
    "woff2": ("WOFF (Web Open Font Format)", "font/woff2"),
}
"""Binary formats with a characteristic beginning."""


def _of_match(match: SignatureMatch, verdict: FormatVerdict, warning: str) -> Format:
    return Format(
        puid=match.puid,
        name=match.name,
        version=match.version,
        mime=match.mime,
        basis=match.basis,
        verdict=verdict,
        warning=warning,
    )


def _of_looks(seen: FormatGuess, basis: Basis, verdict: FormatVerdict) -> Format:
    warning = seen.because if verdict is FormatVerdict.UNCERTAIN else ""
    return Format(
        puid=seen.puid,
        name=seen.name,
        version=seen.version,
        mime=seen.mime,
        basis=basis,
        verdict=verdict,
        warning=warning,
    )


def _of_server(evidence: Evidence) -> Format | None:
    if media.says_nothing(evidence.mime):
        return None
    return Format(
        puid="",
        name="",
        version="",
        mime=evidence.mime,
        basis=Basis.SERVER,
        verdict=FormatVerdict.UNCERTAIN,
        warning="known only from the server",
    )


def _nothing(warning: str) -> Format:
    return Format(
        puid="",
        name="",
        version="",
        mime="",
        basis=Basis.NOTHING,
        verdict=FormatVerdict.NOT_RECOGNISED,
        warning=warning,
    )
