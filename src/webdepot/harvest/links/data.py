"""Links in data: JSON, playlists, plain text, and guesses from scripts.

A guess (`Hop.SPECULATIVE`) is a string that looks like an address: absolute, or starting with a slash, or
naming a file with a known extension. Guessing from whole scripts does harm on sites that answer 200 to
everything, so the caller decides about it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from webdepot.harvest.links.names import names
from webdepot.harvest.links.reference import Reference
from webdepot.model import Hop

MOST_DEPTH = 100


_PART_KEYS = names(
    "contenturl embedurl icon icons image images logo photo poster screenshot screenshots src thumbnail "
    "thumbnailurl"
)
_LINK_KEYS = names("href link permalink scope start_url startpage url @id sameas item mainentityofpage")
_FILE = re.compile(
    r"(?i)\.(?:avif|bmp|css|csv|docx?|dzi|eot|epub|geojson|gif|glb|gltf|gpx|html?|ico|jpe?g|jpg|js|json|kml|kmz|"
    r"m3u8|m4a|m4v|mjs|mov|mp3|mp4|mpd|odp|ods|odt|oga|ogg|ogv|opus|otf|pdf|php|png|pptx?|rss|svg|swf|tiff?|"
    r"topojson|tsv|ttf|txt|vtt|wasm|wav|webm|webmanifest|webp|woff2?|xhtml|xlsx?|xml|ya?ml|zip)(?:[?#].*)?\Z"
)
_QUOTED = re.compile(r"""(["'`])((?:[^"'`\\\s<>{}]|\\/){3,2000})\1""")
_ABSOLUTE = re.compile(r"(?i)(?:https?:)?//[^\s/$.?#\"'<>]++\.?[^\s\"'<>]*+\Z")
_IN_TEXT = re.compile(r"(?i)\bhttps?://[^\s<>\"'`\\^{}|]{3,2000}")
_NOT_IN_ADDRESS = re.compile("[ \t\n<>{}]")
_GAP = re.compile("%(?![0-9A-Fa-f]{2})")
"""What a script replaces before it asks: `/tiles/%d.png`, `%%URL%%/font.woff2`."""
_URI_ATTRIBUTE = re.compile(r'URI="([^"]+)"')


def of_json(text: str, *, guess: bool = True) -> list[Reference]:
    """Strings of a JSON document under keys for addresses; with `guess`, also strings that look like one."""
    references: list[Reference] = []
    _add_values(references, [("", json.loads(text))], "", 0, guess)
    return references


def _add_values(
    references: list[Reference], items: Iterable[tuple[str, Any]], outer: str, depth: int, guess: bool
) -> None:
    """Add the references in these values, each with its key, of an object or list with the key `outer`."""
    is_part = outer in _PART_KEYS
    for name, value in items:
        kind = type(value)
        lower = name.lower()
        if kind is str:
            # Most strings are passed over here: pages have thousands of them.
            if "/" not in value and "." not in value and not is_part and lower not in _PART_KEYS:
                continue
        elif (kind is not dict and kind is not list) or depth >= MOST_DEPTH:
            continue
        # In "image": {"url": …} the address is that of the image.
        key = outer if is_part and lower in ("url", "@id") else lower
        if key in ("@context", "@type"):
            continue
        if kind is not str:
            if kind is dict and (service := _image_service(value)):
                references.append((service, Hop.EMBED))
            inner = value.items() if kind is dict else [(key, each) for each in value]
            _add_values(references, inner, key, depth + 1, guess)
        elif hop := _hop_of(value, key, guess):
            references.append((value, hop))


def _image_service(value: dict[str, Any]) -> str:
    """The address of the description of an image server, if the object names one: viewers of scanned books
    request it first (https://iiif.io/api/image/2.1/#image-information).
    """
    address = value.get("@id", value.get("id"))
    description = f"{value.get('@context')} {value.get('profile')} {value.get('type')}"
    is_service = "iiif.io/api/image/" in description or "ImageService" in description
    return f"{address.rstrip('/')}/info.json" if is_service and isinstance(address, str) and address else ""


def _hop_of(value: str, key: str, guess: bool) -> Hop | None:
    if key in _PART_KEYS and could_be_address(value):
        return Hop.EMBED
    if not (guess or key in _LINK_KEYS) or not looks_like_address(value):
        return None
    return Hop.LINK if key in _LINK_KEYS else Hop.SPECULATIVE


def looks_like_address(value: str) -> bool:
    """Whether it is absolute, starts at the root, or names a file; no spaces."""
    if not could_be_address(value):
        return False
    if _ABSOLUTE.match(value):
        return True
    return ":" not in value.partition("/")[0] and (
        value[0] == "/" or value.startswith(("./", "../")) or bool(_FILE.search(value))
    )


def could_be_address(value: str) -> bool:
    return (
        0 < len(value) <= 2083
        and _NOT_IN_ADDRESS.search(value) is None
        and not value[:6].lower().startswith(("data:", "blob:", "about:"))
    )


def guesses(script: str) -> Iterator[Reference]:
    """Quoted strings of a script that look like an address: absolute ones, and files of known types."""
    for _, quoted in _QUOTED.findall(script):
        address = quoted.replace("\\/", "/")
        is_file = (
            bool(_FILE.search(address)) and ":" not in address and not address.startswith(("//", "/*", "."))
        )
        is_address = is_file or address.startswith(("./", "../")) or _ABSOLUTE.match(address)
        if is_address and not _GAP.search(address):
            yield address, Hop.SPECULATIVE


def of_playlist(text: str) -> Iterator[Reference]:
    """M3U and HLS (RFC 8216): each line that is not a tag is an address; tags may contain one."""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            yield from ((address, Hop.EMBED) for address in _URI_ATTRIBUTE.findall(stripped))
        elif stripped:
            yield stripped, Hop.EMBED


def of_text(text: str) -> Iterator[Reference]:
    """References of plain text: a list of addresses is a sitemap (sitemaps.org), robots.txt names sitemaps,
    addresses in other text are guesses.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(_ABSOLUTE.match(line) for line in lines):
        yield from ((line, Hop.MANIFEST) for line in lines)
        return
    for line in lines:
        if line[:8].lower() == "sitemap:":
            yield line[8:].strip(), Hop.MANIFEST
        else:
            yield from ((address.rstrip(".,;:!?)]"), Hop.SPECULATIVE) for address in _IN_TEXT.findall(line))
