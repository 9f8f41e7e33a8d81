"""Links of a response: the canonical addresses in its headers and its body, with their hops.

Order of steps:
1. Headers: Location, Refresh, Link (RFC 8288), Content-Location.
2. The type of the body, from its headers, its first bytes and its file name (`bodies.find_reader`).
3. The body without transfer and content coding, up to the limit (a decompression bomb costs no more).
4. The references in it (`bodies`), resolved against the page's base (`resolve`), each once.

A page with an error status is shown in replay, so its parts are taken, but its links are not followed. What
cannot be read is noted for the log and never raises an exception: one strange page must not end a harvest.
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from webdepot.container.http import HttpHead, content_decoded, transfer_decoded
from webdepot.harvest.links import bodies, html
from webdepot.harvest.links.bodies import LinkLimits, references_in_data_url
from webdepot.harvest.links.page_data import find_page_data
from webdepot.harvest.links.reference import HOP_RANK, Reference
from webdepot.harvest.links.resolve import resolve, resolved_in
from webdepot.harvest.politeness import robots
from webdepot.model import Hop
from webdepot.url import Url, find_canonical

_BATCH = 128
"""References between two checks of the limits: most pages have fewer."""
_LINK_VALUE = re.compile(
    r"<([^<>]*+)>((?:\s*+;\s*+[\w!#$&+.^`|~*-]++(?:\s*+=\s*+(?:\"(?:[^\"\\]|\\.)*+\"|[^\s\",;]*+))?)*+)"
)
_REL = re.compile(r";\s*+rel\s*+=\s*+(?:\"([^\"]*)\"|([^\s\",;]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    links: list[tuple[Url, Hop]]
    """Each address once, with the best hop by which it was found, in the order of the page."""
    note: str = ""
    """Annotations for the log: what was cut or could not be read."""
    directives: frozenset[str] = frozenset()
    """The directives of the page in meta robots and X-Robots-Tag: `nofollow`, `noarchive`, …"""
    nofollow: frozenset[Url] = frozenset()
    """Links that were found only with `rel=nofollow`."""
    is_empty: bool = False
    """Whether it is a page that is empty until scripts fill it."""
    software: frozenset[str] = frozenset()
    """Ids of the software that the page shows signs of."""


def extract(
    url: Url, head: HttpHead, body: BinaryIO, limits: LinkLimits, *, page: Url | None = None
) -> Extracted:
    """The links of one response. `body` is as received and is read from its start. `page` is the page of
    which it is a part, if that is known. Never raises.
    """
    notes: list[str] = []
    directives = robots.tag_directives(head.get_all("x-robots-tag"), limits.agent)
    nofollow: frozenset[Url] = frozenset()
    is_empty = False
    software: frozenset[str] = frozenset()
    collected = _Collected(limits)
    collected.add(_of_headers(head), url)
    reader = _find_reader(url, head)
    if reader is not None:
        content = _content(head, body, limits, notes)
        try:
            body_links = reader(content, head, limits)
            base = find_canonical(body_links.base, url) or url if body_links.base else url
            collected.add(body_links.references, base, body_links.encoding, parts_only=head.status >= 400)
            if data := find_page_data(url, content) if head.status < 400 else None:
                collected.add([(data, Hop.EMBED)], url)
            if body_links.of_page and head.status < 400:
                of_page = (
                    body_links.of_page
                    if page
                    else [each for each in body_links.of_page if each[1] is not Hop.EMBED]
                )
                collected.add(of_page, page or url)
            directives |= body_links.directives
            software, is_empty = body_links.software, body_links.is_empty
            notes += [f"linksPartFailed:{name}" for name in sorted(body_links.unread)]
            if body_links.nofollow and head.status < 400:
                followed = set(collected.links)
                collected.add(body_links.nofollow, base, body_links.encoding)
                nofollow = frozenset(collected.links.keys() - followed)
        except Exception as error:
            notes.append(f"linksFailed:{type(error).__name__}")
    if collected.is_full:
        notes.append(f"linksCutAt:{limits.links}")
    if collected.is_late:
        notes.append(f"linksCutAtSecond:{limits.time_s:g}")
    return Extracted(
        links=list(collected.links.items()),
        note=",".join(notes),
        directives=directives,
        nofollow=nofollow,
        is_empty=is_empty,
        software=software,
    )


def may_wait(url: Url, head: HttpHead) -> bool:
    """Whether `extract` may wait for another process, and so must not be called in the event loop."""
    reader = _find_reader(url, head)
    return reader is not None and bodies.may_wait(reader)


def _find_reader(url: Url, head: HttpHead) -> bodies.Reader | None:
    mime = (head.get("content-type") or "").partition(";")[0].strip().lower()
    return None if 300 <= head.status < 400 else bodies.find_reader(mime, url)


def _content(head: HttpHead, body: BinaryIO, limits: LinkLimits, notes: list[str]) -> bytes:
    """The body without its codings, up to the limit."""
    body.seek(0)
    decoded = transfer_decoded(body, head)
    if "content-encoding" in head.first:
        decoded = content_decoded(decoded, head, limit_bytes=limits.page_bytes + 1)
    content = decoded.read(limits.page_bytes + 1)
    if len(content) > limits.page_bytes:
        notes.append(f"linksCutAtByte:{limits.page_bytes}")
        content = content[: limits.page_bytes]
    return content


class _Collected:
    """Addresses found so far, each with its best hop, within the limits of number and time."""

    def __init__(self, limits: LinkLimits) -> None:
        self.links: dict[Url, Hop] = {}
        self.is_full = False
        self.is_late = False
        self._limits = limits
        self._until_s = 0.0

    def add(
        self, references: Iterable[Reference], base: str, encoding: str = "utf-8", *, parts_only: bool = False
    ) -> None:
        known, links, most = resolved_in(base), self.links, self._limits.links
        remaining = iter(references)
        while batch := list(islice(remaining, _BATCH)):
            for raw, hop in batch:
                if hop is not Hop.EMBED and parts_only:
                    continue
                if raw in known:
                    address = known[raw]
                elif raw[:5].lower() == "data:":
                    self.add(references_in_data_url(raw), base, parts_only=parts_only)
                    continue
                else:
                    address = resolve(raw, base, encoding, known)
                if address is not None:
                    earlier = links.setdefault(address, hop)
                    if earlier is not hop and HOP_RANK[hop] < HOP_RANK[earlier]:
                        links[address] = hop
            while len(links) > most:
                links.popitem()
                self.is_full = True
            # Most pages have one batch.
            self.is_late = self.is_late or (len(batch) == _BATCH and self._takes_too_long())
            if self.is_full or self.is_late:
                return

    def _takes_too_long(self) -> bool:
        now_s = time.thread_time()
        self._until_s = self._until_s or now_s + self._limits.time_s
        return now_s >= self._until_s


def _of_headers(head: HttpHead) -> Iterator[Reference]:
    # Python reads headers as Latin-1; servers send raw UTF-8 here.
    for value in head.get_all("location"):
        yield _utf8(value), Hop.REDIRECT if 300 <= head.status < 400 else Hop.LINK
    for value in head.get_all("refresh"):
        yield _utf8(html.refresh_target(value)), Hop.REDIRECT
    for value in head.get_all("content-location"):
        yield _utf8(value), Hop.LINK
    for value in head.get_all("link"):
        yield from _of_link_header(value)


def _of_link_header(value: str) -> Iterator[Reference]:
    for address, parameters in _LINK_VALUE.findall(value):
        rel = _REL.search(parameters)
        hop = html.rel_hop((rel[1] or rel[2] or "") if rel else "alternate")
        if hop is not None:
            yield _utf8(address), hop


def _utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
