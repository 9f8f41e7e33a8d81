"""Links in data: JSON, playlists, plain text, and guesses from scripts.

A guess (`Hop.SPECULATIVE`) is a string that looks like an address: absolute, or starting with a slash, or
naming a file with a known extension. Guessing from whole scripts does harm on sites that answer 200 to
everything, so the caller decides about it.
"""

import json
import re
from collections.abc import Iterator
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
    r"(?i)\.(?:avif|bmp|css|csv|docx?|eot|epub|gif|html?|ico|jpe?g|jpg|js|json|m3u8|m4a|m4v|mjs|mov|mp3|mp4|"
    r"mpd|odp|ods|odt|oga|ogg|ogv|opus|otf|pdf|php|png|pptx?|rss|svg|swf|tiff?|ttf|txt|vtt|wasm|wav|webm|"
    r"webmanifest|webp|woff2?|xhtml|xlsx?|xml|zip)(?:[?#].*)?\Z"
)
_QUOTED = re.compile(r"""(["'`])((?:[^"'`\\\s<>{}]|\\/){3,2000})\1""")
_ABSOLUTE = re.compile(r"(?i)(?:https?:)?//[^\s/$.?#\"'<>]++\.?[^\s\"'<>]*+\Z")
_IN_TEXT = re.compile(r"(?i)\bhttps?://[^\s<>\"'`\\^{}|]{3,2000}")
_URI_ATTRIBUTE = re.compile(r'URI="([^"]+)"')


def of_json(text: str, *, guess: bool = True) -> Iterator[Reference]:
    """Strings of a JSON document under keys for addresses; with `guess`, also strings that look like one."""
    yield from _of_value(json.loads(text), "", 0, guess=guess)


def _of_value(value: Any, key: str, depth: int, *, guess: bool) -> Iterator[Reference]:
    if depth > MOST_DEPTH:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            # In "image": {"url": …} the address is that of the image.
            inner_key = key if key in _PART_KEYS and name.lower() in ("url", "@id") else name.lower()
            if inner_key not in ("@context", "@type"):
                yield from _of_value(inner, inner_key, depth + 1, guess=guess)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_value(inner, key, depth + 1, guess=guess)
    elif isinstance(value, str):
        yield from _of_string(value, key, guess=guess)


def _of_string(value: str, key: str, *, guess: bool) -> Iterator[Reference]:
    if key in _PART_KEYS and could_be_address(value):
        yield value, Hop.EMBED
    elif key in _LINK_KEYS and looks_like_address(value):
        yield value, Hop.LINK
    elif guess and looks_like_address(value):
        yield value, Hop.SPECULATIVE


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
        and not any(letter in value for letter in " \t\n<>{}")
        and not value.lower().startswith(("data:", "blob:", "about:"))
    )


def guesses(script: str) -> Iterator[Reference]:
    """Quoted strings of a script that look like an address: absolute ones, and files of known types."""
    for _, quoted in _QUOTED.findall(script):
        address = quoted.replace("\\/", "/")
        is_file = (
            bool(_FILE.search(address)) and ":" not in address and not address.startswith(("//", "/*", "."))
        )
        if is_file or address.startswith(("./", "../")) or _ABSOLUTE.match(address):
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
    """Plain text: a list of addresses is a sitemap (sitemaps.org), robots.txt names sitemaps, others:
    guesses.
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
