"""Mazes: sites that answer every address with a page, of any content, that links to ever new addresses.

Neither the form of such addresses nor the content of the pages distinguishes them from a large wiki. But a
server that invents pages also invents one for an address that cannot exist, and a wiki does not. Steps:

1. A page counts if only one page links to it, and if it links to addresses that were never seen. When the
   pages below a folder mostly count (`SUSPECTED`), the folder is suspected. Most sites get there while they
   are new to the harvest.
2. Addresses that cannot exist are requested, of the form of the pages: the segments after the folder, or the
   values of the query, are replaced. Errors, redirects, and pages without links of their own that were never
   seen, clear the folder when there are `DEAD_ENDS` more of them than of other answers. It is suspected again
   when `PATIENCE` times as many pages count, because a maze may have dead ends, too.
3. After `PROBES` other answers, the lines that they have in common are the content of a page of the maze: the
   navigation, a footer, or nothing. A page that lacks one of them (a `not found` that only pages for missing
   addresses have) is not one of the maze. If `ALIKE` pages that count have all these lines, and no other line
   in common (a `print this page` that only real pages have), further addresses below the folder to which only
   one page links are rejected. A few (`ONE_OF`, at most `MOST_SAMPLES`) are still taken, and if they are not
   like the maze, all others are taken again.

Parts of pages (frames, styles) and sitemaps can be mazes as well; each kind counts for itself. Memory is
bounded by `MOST_FOLDERS`, `MOST_SUSPECTS` and `MOST_LINKED`.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from webdepot.harvest.scope.hop_path import embed_depth, is_guess, is_seed_path
from webdepot.harvest.scope.trap_watch import PageContent
from webdepot.model import Answer, Candidate, Hop, Verdict
from webdepot.url import Url, find_canonical, origin_of

MAZES = "mazes"
"""The kind of address, as in `software.toml`: it can be included."""
SUSPECTED = 40
"""How many pages that count make a folder suspected; a page to which several pages link subtracts two."""
PATIENCE = 4
PROBES = 3
DEAD_ENDS = 2
ALIKE = 20
"""How many pages with all lines of these answers make a folder a maze; a page that lacks one subtracts four.
Below half of this number, the folder is no longer a maze.
"""
MOST_COMPARED = 300
"""Pages of a suspected folder that are compared until it is cleared."""
ONE_OF = 64
MOST_SAMPLES = 20
MOST_FOLDERS = 20_000
MOST_SUSPECTS = 1_000
MOST_LINKED = 200_000
"""How many addresses to which several pages link are remembered."""

Links = Iterable[tuple[Url, Hop]]
_HOPS = {"L": Hop.LINK, "E": Hop.EMBED, "M": Hop.MANIFEST}
_FolderKey = tuple[str, str]
"""Kind of address, and origin with the folder, or with the path and `?`."""


@dataclass(slots=True)
class _Suspect:
    """A folder whose pages look like a maze."""

    probes: list[tuple[frozenset[Url], frozenset[int]]] = field(default_factory=list)
    """Of each answer to an address that cannot exist: its new links, and its lines."""
    dead_ends: int = 0
    """Answers without such links."""
    common: frozenset[int] | None = None
    """The lines that all these answers have; None until they are known."""
    shared: frozenset[int] | None = None
    """The lines that all pages similar to these answers have."""
    alike: int = 0
    compared: int = 0
    is_maze: bool = False
    samples: int = 0


class MazeWatch:
    """Detects mazes in one crawl. Its state is in memory only: after a restart it is soon learned again."""

    def __init__(self) -> None:
        self.is_off = False
        self._scores: OrderedDict[_FolderKey, int] = OrderedDict()
        self._suspects: dict[_FolderKey, _Suspect] = {}
        self._needed: OrderedDict[_FolderKey, int] = OrderedDict()
        """Pages that count after which a folder that was cleared is suspected again."""
        self._linked: set[int] = set()
        """Hashes of addresses to which more than one page links."""

    # --- learning from pages ---

    def note(
        self,
        candidate: Candidate,
        links: Links,
        known: Collection[Url],
        lines: Callable[[], PageContent | None],
    ) -> None:
        """Take note of an answer before its links are queued. `known` are the addresses queued earlier;
        `lines` is called only if the answer is compared.
        """
        if self.is_off or is_guess(candidate.path):
            return
        kind = _kind_of(candidate)
        origin, hop = f"{origin_of(candidate.url)}/", _HOPS[kind]
        same = [url for url, how in links if how is hop and url.startswith(origin) and url != candidate.url]
        new = [url for url in same if url not in known]
        if len(self._linked) > MOST_LINKED:
            self._linked.clear()
        if len(new) < len(same):
            self._linked.update(hash(url) for url in same if url in known)
        is_lonely = self._is_lonely(candidate)
        counts = bool(new) and is_lonely
        self._score(candidate, kind, 1 if counts else 0 if is_lonely else -2)
        for folder in _folders(candidate.url):
            suspect = self._suspects.get((kind, folder))
            if suspect is not None and suspect.common is not None and is_lonely:
                self._compare((kind, folder), suspect, lines(), counts=counts)

    def _score(self, candidate: Candidate, kind: str, points: int) -> None:
        """Count a page for each folder that it is in; the deepest that has enough is suspected."""
        deepest = None
        for folder in _folders(candidate.url):
            key = (kind, folder)
            if key in self._suspects:
                return
            score = max(self._scores.pop(key, 0) + points, 0)
            if score:
                self._scores[key] = score
            if points > 0 and score >= self._needed.get(key, SUSPECTED):
                deepest = deepest or key
        if deepest is not None:
            self._suspects[deepest] = _Suspect()
            if len(self._suspects) > MOST_SUSPECTS:
                del self._suspects[next(iter(self._suspects))]
        while len(self._scores) > MOST_FOLDERS:
            self._scores.popitem(last=False)

    def _compare(
        self, key: _FolderKey, suspect: _Suspect, lines: PageContent | None, *, counts: bool
    ) -> None:
        """Compare a page of a suspected folder with what its server invents. A page with the same lines but
        without new links may be a dead end of a maze, or a page of any site.
        """
        if lines is None or suspect.common is None or not suspect.common.issubset(lines):
            suspect.alike = max(suspect.alike - 4, 0)
        elif counts:
            suspect.alike = min(suspect.alike + 1, 2 * ALIKE)
            suspect.shared = (
                frozenset(lines) if suspect.shared is None else suspect.shared.intersection(lines)
            )
        suspect.compared += 1
        suspect.samples += suspect.is_maze
        if suspect.is_maze:
            suspect.is_maze = suspect.alike >= ALIKE // 2
        elif suspect.alike >= ALIKE and suspect.shared == suspect.common:
            suspect.is_maze = True
        elif suspect.compared >= MOST_COMPARED:
            self._clear(key)

    # --- addresses that cannot exist ---

    def find_probe(self, candidate: Candidate) -> Url | None:
        """An address that cannot exist, to be asked for before this candidate; None if nothing is to be
        learned.
        """
        key = self._find_key(candidate, lambda suspect: suspect.common is None) if self._suspects else None
        if key is None:
            return None
        suspect = self._suspects[key]
        address = nonsense(candidate.url, key[1], len(suspect.probes) + suspect.dead_ends)
        if address is None:
            self._clear(key)
        return address

    def note_probe(
        self,
        candidate: Candidate,
        probe: Url,
        links: Links,
        known: Collection[Url],
        lines: PageContent | None,
    ) -> None:
        """Take note of the answer to a probe that was asked for before a candidate. `known` are the addresses
        queued earlier; `lines` is None if the answer is not a page, or if the probe must not be asked for.
        """
        key = self._find_key(candidate, lambda suspect: suspect.common is None)
        if key is None:
            return
        suspect, hop, origin = self._suspects[key], _HOPS[key[0]], f"{origin_of(candidate.url)}/"
        own = frozenset(
            url
            for url, how in links
            if how is hop and url.startswith(origin) and url not in known and url != probe
        )
        if own and lines is not None:
            suspect.probes.append((own, frozenset(lines)))
        else:
            suspect.dead_ends += 1
        if suspect.dead_ends == len(suspect.probes) + DEAD_ENDS:
            self._clear(key)
        elif len(suspect.probes) == PROBES:
            self._conclude(key, suspect)

    def _conclude(self, key: _FolderKey, suspect: _Suspect) -> None:
        """Whether each answer has links that no other has."""
        pages = [own for own, _ in suspect.probes]
        others = [frozenset().union(*(page for page in pages if page is not own)) for own in pages]
        if all(own - other for own, other in zip(pages, others, strict=True)):
            suspect.common = frozenset.intersection(*(lines for _, lines in suspect.probes))
            suspect.probes.clear()
        else:
            self._clear(key)

    def _clear(self, key: _FolderKey) -> None:
        self._suspects.pop(key, None)
        self._scores.pop(key, None)
        self._needed[key] = PATIENCE * self._needed.pop(key, SUSPECTED)
        if len(self._needed) > MOST_FOLDERS:
            self._needed.popitem(last=False)

    # --- what follows from it ---

    def find_rejection(self, candidate: Candidate) -> Verdict | None:
        """The rejection of an address of a maze to which only one page links; None if it is not one."""
        if not self._suspects or self.is_off or is_seed_path(candidate.path) or is_guess(candidate.path):
            return None
        key = self._find_key(candidate, lambda suspect: suspect.is_maze)
        if key is None or not self._is_lonely(candidate):
            return None
        if self._suspects[key].samples < MOST_SAMPLES and _number(candidate.url) % ONE_OF == 0:
            return None
        return Verdict(
            answer=Answer.REJECT,
            rule=MAZES,
            reason=f"its server invents pages below {key[1]}: also for addresses that cannot exist",
        )

    def _find_key(self, candidate: Candidate, is_meant: Callable[[_Suspect], bool]) -> _FolderKey | None:
        kind = _kind_of(candidate)
        for folder in _folders(candidate.url):
            suspect = self._suspects.get((kind, folder))
            if suspect is not None and is_meant(suspect):
                return kind, folder
        return None

    def _is_lonely(self, candidate: Candidate) -> bool:
        """Whether only one page is known to link to it."""
        return not is_seed_path(candidate.path) and hash(candidate.url) not in self._linked


def _kind_of(candidate: Candidate) -> str:
    if embed_depth(candidate.path):
        return "E"
    return "M" if candidate.path.endswith(Hop.MANIFEST) else "L"


def _folders(url: str) -> Iterator[str]:
    """The folders that an address is in, the deepest first; of one with a query, its path is the deepest."""
    path, question, _ = url.partition("?")
    if question:
        yield f"{path}?"
    root = len(origin_of(url)) + 1
    end = len(path.rstrip("/"))
    while (end := path.rfind("/", 0, end)) >= root - 1:
        yield path[: end + 1]


def nonsense(url: str, folder: str, number: int) -> Url | None:
    """An address of the same form in this folder that cannot exist; None if there is nothing to replace."""
    rest = url[len(folder) :]
    if folder.endswith("?"):
        return find_canonical(folder + _with_nonsense(rest, "&", number))
    path, question, query = rest.partition("?")
    if not path.strip("/"):
        return None
    address = folder + "/".join(
        _nonsense_segment(part, number + at) for at, part in enumerate(path.split("/"))
    )
    return find_canonical(f"{address}?{_with_nonsense(query, '&', number)}" if question else address)


def _with_nonsense(query: str, between: str, number: int) -> str:
    parts = (part.partition("=") for part in query.split(between))
    return between.join(
        f"{name}={_nonsense_segment(value, number + at)}" if value else _nonsense_segment(name, number + at)
        for at, (name, _, value) in enumerate(parts)
    )


def _nonsense_segment(segment: str, number: int) -> str:
    """A name that no page has: longer than any, of digits if it replaces digits, with the same extension."""
    if not segment:
        return ""
    name, dot, extension = segment.rpartition(".")
    if not dot or not extension.isalnum() or len(extension) > 5:
        name, extension = segment, ""
    digest = _number(f"{segment} {number}", person=b"no such page")
    word = f"{digest % 10**18:018d}" if name.isdecimal() else f"{digest:024x}"[:24]
    return f"{word}.{extension}" if extension else word


def _number(text: str, person: bytes = b"") -> int:
    data = text.encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=12, person=person).digest(), "big")
