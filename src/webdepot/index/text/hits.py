"""What the engines of the text index share: how a query and a page are read, and how states and hits are
built.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from webdepot import times
from webdepot.index.text.near_duplicates import Leader
from webdepot.index.text.snippets import Range
from webdepot.index.text.states import FOREVER, Content
from webdepot.index.text.words import prepared
from webdepot.ports.search import Hit, SearchSort, State, TextQuery
from webdepot.url import host_of


def asked_stamps(query: TextQuery) -> tuple[int, int]:
    """The first and last capture time of the query's period."""
    low, high = 0, FOREVER
    if query.period is not None:
        low, high = int(times.to_timestamp(query.period.start)), int(times.to_timestamp(query.period.end))
    return low, high if query.as_of is None else min(high, int(times.to_timestamp(query.as_of)))


def wanted_texts(query: TextQuery) -> list[str]:
    """Every word and phrase that a page should have in any part; a snippet marks them."""
    alternatives = (text for group in query.alternatives for text in group)
    return [*query.phrases, *query.words, *alternatives, *(text for _, text in query.parts)]


def address_words(url: str) -> str:
    """The address as text to be indexed: decoded, without its scheme."""
    return prepared(unquote(url.partition("://")[2] or url, errors="replace"))


def sites_of(url: str) -> Iterator[str]:
    """The host and every domain above it."""
    host = host_of(url).lower()
    if host.startswith("["):
        yield host.partition("]")[0] + "]"
        return
    labels = host.partition(":")[0].rstrip(".").split(".")
    for at in range(len(labels)):
        yield ".".join(labels[at:])


def state_of(
    query: TextQuery,
    content: Content,
    *,
    key: str,
    collection: str,
    valid: tuple[int, int],
    stamps: Sequence[str],
    anchors: tuple[str, str],
    home: str = "",
) -> State:
    """A state with those of its captures that match the query and may be shown (`stamps`); `anchors` are the
    texts of links from other sites and from its own.
    """
    return State(
        key=key,
        url=content.url,
        collection=collection,
        timestamps=tuple(stamps),
        valid_from=digits(valid[0]),
        valid_to=digits(valid[1]),
        title=content.title,
        headings=content.headings,
        text=content.text,
        anchors=anchors[0] if query.anchors else "",
        own_anchors=anchors[1] if query.anchors else "",
        home=home,
        images=content.images,
        mime=content.mime,
        format=content.format,
        size_bytes=content.size_bytes,
        language=content.language,
        digest=min(content.payloads, default=""),
    )


def hit_of(query: TextQuery, state: State, leader: Leader, snippet: tuple[str, tuple[Range, ...]]) -> Hit:
    return Hit(
        key=state.key,
        url=state.url,
        timestamp=state.timestamps[0] if query.sort is SearchSort.OLDEST else state.timestamps[-1],
        title=state.title,
        snippet=snippet[0],
        marks=snippet[1],
        mime=state.mime,
        size_bytes=state.size_bytes,
        language=state.language,
        versions=len(state.timestamps),
        score=leader.score,
        format=state.format,
        similar=leader.similar,
    )


def digits(stamp: int) -> str:
    """A capture time as a timestamp of 14 digits."""
    return f"{stamp:014d}"
