"""Copy a capture index to another one, container by container in the order in which they were added.

PostgreSQL keeps only the beginning and a checksum of a long key (`index.postgresql_rows`). The key is
computed again from the URL if the checksum matches; otherwise its container must be read again.
"""

import hashlib
from dataclasses import dataclass, replace

from webdepot import url
from webdepot.errors import CorruptData
from webdepot.index.postgresql_rows import stored_key
from webdepot.model import Capture
from webdepot.ports.captures import CaptureIndex
from webdepot.services.progress import Phase, Progress, Watch

_CHECKSUM_DIGITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturesDigest:
    containers: int
    captures: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturesCopy:
    digest: CapturesDigest
    """What both have now."""
    again: tuple[str, ...]
    """Containers whose keys can only be read from the container itself; they must be indexed again."""


def copy(source: CaptureIndex, target: CaptureIndex, *, watch: Watch) -> CapturesCopy:
    """Make the target equal to the source. Containers that are equal already are not written again, so that
    it can be repeated. CorruptData if they differ.
    """
    known = [name for name, _ in source.containers()]
    extra = {name for name, _ in target.containers()} - set(known)
    for name in extra:
        target.remove(name)
    has = target.having(known)
    again = []
    for done, name in enumerate(known, 1):
        if name not in has or _digest_of(source, name) != _digest_of(target, name):
            _copy_container(source, target, name)
        if any(_is_cut(capture) for _, capture in target.of_container(name)):
            again.append(name)
        watch(Progress(phase=Phase.INDEX, done=done, total=len(known), note=name))
    before, after = digest(source), digest(target)
    if before != after:
        text = (
            f"The indexes of addresses differ after copying: {before.captures} captures in "
            f"{before.containers} containers, and {after.captures} in {after.containers}."
        )
        raise CorruptData(text, where="captures")
    return CapturesCopy(digest=after, again=tuple(again))


def digest(index: CaptureIndex) -> CapturesDigest:
    """What an index contains: each capture of each container, with its collection, and the order of
    containers.
    """
    whole, containers, captures = hashlib.sha256(), 0, 0
    for name, count in list(index.containers()):
        whole.update(f"{name} {_digest_of(index, name)}\n".encode())
        containers, captures = containers + 1, captures + count
    return CapturesDigest(containers=containers, captures=captures, sha256=whole.hexdigest())


def _copy_container(source: CaptureIndex, target: CaptureIndex, name: str) -> None:
    rows = list(source.of_container(name))
    collection = rows[0][0] if rows else ""
    captures = [_with_whole_key(capture) for _, capture in rows]
    target.add(name, captures, collection=collection)
    if replaced := [capture for capture in captures if capture.replaced]:
        target.replace(replaced)


def _with_whole_key(capture: Capture) -> Capture:
    whole = url.key(capture.url)
    return replace(capture, key=whole) if stored_key(whole) == capture.key else capture


def _is_cut(capture: Capture) -> bool:
    """Whether its key looks like one that PostgreSQL shortened, and is not that of its URL."""
    start, _, checksum = capture.key.rpartition("~")
    return (
        len(checksum) == _CHECKSUM_DIGITS
        and len(start) > _CHECKSUM_DIGITS
        and stored_key(url.key(capture.url)) != capture.key
    )


def _digest_of(index: CaptureIndex, container: str) -> str:
    rows = sorted(f"{collection}\t{_line(capture)}" for collection, capture in index.of_container(container))
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def _line(capture: Capture) -> str:
    return repr(replace(capture, key=stored_key(capture.key)))
