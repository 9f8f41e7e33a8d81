"""Addresses like one that is not archived. Used only for replay: a list of versions is about one address.

Cache busters are query arguments that a script adds so that an address is new each time. Two addresses that
differ only in them are the same page. An address with fewer arguments may be another page, so it is offered.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from webdepot.access.lookup import Segment, iter_keys
from webdepot.model import EVERYTHING
from webdepot.ports.captures import CaptureIndex

MOST_KEYS = 1000
"""Maximum number of keys with the same start that are compared."""
MOST_ARGUMENTS = 8
"""Arguments of a longer query are not left out one by one."""
_NUMBERED = re.compile(
    r"(?:_|_t|_ts|t|ts|cb|cachebuster|cache|bust|buster|nocache|no_cache|rand|random|rnd|rndnum|r|time|timestamp|stamp|unique|uid|dc)=[0-9.]{3,30}\Z"
)
_NAMED = re.compile(
    r"(?:callback|jsonp|cb|jsoncallback|_callback)=[a-z0-9_.$]{0,80}\Z|x-sveltekit-invalidated=[01]{0,80}\Z"
)
"""Names of JSONP functions; and which parts of its data a page of SvelteKit requests: an archived answer with
all parts will do.
"""


def without_busters(key: str) -> str:
    """The key without cache busters; the key itself if it has none."""
    path, mark, query = key.partition("?")
    if not mark:
        return key
    kept = [
        argument for argument in query.split("&") if not (_NUMBERED.match(argument) or _NAMED.match(argument))
    ]
    return f"{path}?{'&'.join(kept)}" if kept else path


def starts_with_buster(key: str) -> list[str]:
    """The beginnings of keys that differ from this one in the value of a cache buster: up to that value.
    Arguments in keys are sorted, so that a buster is often the first (`_=1794978981428`).
    """
    path, mark, query = key.partition("?")
    starts, before = [], path + mark
    for argument in query.split("&") if mark else ():
        if _NUMBERED.match(argument) or _NAMED.match(argument):
            starts.append(before + argument.partition("=")[0] + "=")
        before += argument + "&"
    return starts


def find_key(
    captures: CaptureIndex, key: str, segments: Iterable[Segment], *, collection: str = EVERYTHING
) -> str | None:
    """An archived key that differs from this one only in cache busters. `segments` cover the keys that begin
    with the bare one, or like this one up to a buster.
    """
    bare = without_busters(key)
    near = islice(iter_keys(captures, segments, collection=collection), MOST_KEYS)
    return next((capture.key for capture, _ in near if without_busters(capture.key) == bare), None)


def shorter_queries(url: str) -> Iterator[str]:
    """The address without one of its query arguments, the last one first; with only one of them; and without
    its query. None for an address without a query.
    """
    bare, mark, query = url.partition("?")
    if not mark:
        return
    between = "&" if "&" in query else ";"
    arguments = query.split(between)
    if 1 < len(arguments) <= MOST_ARGUMENTS:
        for number in reversed(range(len(arguments))):
            yield f"{bare}?{between.join(arguments[:number] + arguments[number + 1 :])}"
        if len(arguments) > 2:
            yield from (f"{bare}?{argument}" for argument in arguments)
    yield bare
