"""The text in which targets are searched: their names and addresses, folded. Case and accents are ignored."""

import re
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, select, update

from webdepot.selection.tables import targets
from webdepot.text.search_words import fold
from webdepot.url import Url, host_of

MOST_WORDS = 8
_LONGEST_WORDS_BYTES = 2000
"""PostgreSQL allows at most 2,704 bytes in an index entry."""
_AROUND = re.compile(r"\A(?:https?://)?(?:www\d*\.)?|/\Z")
"""Parts of an address that are ignored in a search."""


def having(typed: str) -> list[ColumnElement[bool]]:
    """Conditions for targets that contain each of these words in their name or in one of their addresses;
    case and accents are ignored.

    Parts of words match: a search for `museum` should also find the Klokkenmuseum. An index of prefixes would
    not help, so the text of all targets is scanned, in an index that contains little else.
    """
    terms = [_AROUND.sub("", fold(word)) for word in typed.split()[:MOST_WORDS]]
    return [targets.c.words.contains(term, autoescape=True) for term in terms if term]


def words_of(name: str, seeds: Iterable[Url]) -> str:
    """The text in which a target is searched: its name and its addresses; hosts also in their own letters
    (`müller.example`).
    """
    addresses = [_AROUND.sub("", fold(seed)) for seed in seeds]
    readable = [fold(host) for host in dict.fromkeys(map(_readable_host, seeds)) if host]
    text = " ".join(dict.fromkeys([*fold(name).split(), *readable, *addresses]))
    return text.encode(errors="replace")[:_LONGEST_WORDS_BYTES].decode(errors="ignore")


def _readable_host(url: Url) -> str:
    """A host with non-ASCII letters in readable form; empty if it has none."""
    host = host_of(url).partition(":")[0]
    try:
        return host.encode("ascii").decode("idna") if "xn--" in host else ""
    except UnicodeError:
        return ""


def restore_words(connection: Connection) -> None:
    """Rebuild the search text of targets that were stored without it, from names and addresses."""
    chosen = select(targets.c.id, targets.c.name, targets.c.seeds).where(targets.c.words == "")
    for row in connection.execute(chosen).all():
        connection.execute(
            update(targets).where(targets.c.id == row.id).values(words=words_of(row.name, row.seeds))
        )
