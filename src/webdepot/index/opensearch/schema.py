"""Indexes and documents of OpenSearch. https://docs.opensearch.org/2.19/

An archive has four indexes on the server, whose names begin with `[index] opensearch_index`:

    NAME-states      the states of pages, as in `text/tantivy_schema.py`: what is searched
    NAME-pages       for each page the list of its states, and what was added to it (`pages.py`): read by name
    NAME-containers  containers, and revisits whose original has not been seen yet
    NAME-words       words with the number of states that have them (`words.py`)

Fields of a state that differ from Tantivy's:

    page        long                the hash of the key as a signed number
    above       keyword, many       what the key begins with, up to each `,` `)` `/` `?` `&`: for closed areas
    months      long, many          YYYYMM + 10⁶ × n for each bit n of the number of captures in that month
    likeness    long                the simhash as a signed number
    long_key    stored              the whole key, if it is too long to be indexed
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webdepot.index.text import tantivy_schema
from webdepot.index.text.states import StateRun
from webdepot.index.text.tantivy_schema import MONTH
from webdepot.index.word_analysis import STEMMERS

VERSION = 1
"""Version of the documents; another version needs a rebuild."""
MOST_FETCHED = 200_000
_LONGEST_KEY = 8000
_LONGEST_ABOVE, _MOST_ABOVE = 500, 40
_BOUNDARY = re.compile(r"[,)/?&]")
_SIGN = 1 << 64


class IndexNames:
    """The indexes of one archive."""

    def __init__(self, prefix: str) -> None:
        self.states = f"{prefix}-states"
        self.pages = f"{prefix}-pages"
        self.containers = f"{prefix}-containers"
        self.words = f"{prefix}-words"

    def all(self) -> tuple[str, ...]:
        return self.states, self.pages, self.containers, self.words


def bodies(names: IndexNames, *, shards: int, replicas: int) -> dict[str, dict[str, Any]]:
    """Settings and mappings by the name of the index."""
    common = {"number_of_replicas": replicas, "refresh_interval": -1}
    large = {**common, "number_of_shards": shards}
    return {
        names.states: {
            "settings": {
                **large,
                "max_result_window": MOST_FETCHED,
                "merge.policy.expunge_deletes_allowed": 0,
                "analysis": _ANALYSIS,
            },
            "mappings": _mappings(_state_fields(), excluded=["words", "home", "above", "stem_*"]),
        },
        names.pages: {
            "settings": large,
            "mappings": {**_mappings({}), "enabled": False},
        },
        names.containers: {
            "settings": {**common, "number_of_shards": 1},
            "mappings": _mappings(
                {
                    "kind": _KEYWORD,
                    "name": _KEYWORD,
                    "token": _KEYWORD,
                    "container": _KEYWORD,
                    "page": {"type": "object", "enabled": False},
                }
            ),
        },
        names.words: {
            "settings": {**common, "number_of_shards": 1},
            "mappings": _mappings({"word": _KEYWORD, "states": {"type": "long"}}),
        },
    }


def _mappings(fields: Mapping[str, Any], excluded: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "dynamic": "strict" if fields else "false",
        "_meta": {"webdepot": VERSION},
        "_source": {"excludes": list(excluded)},
        "properties": dict(fields),
    }


_KEYWORD = {"type": "keyword"}
_NAME = {"type": "keyword", "ignore_above": 1000}
"""Names are short; longer ones are stored but not searched. OpenSearch refuses terms of 32 kB."""
_SEARCHED = {**_NAME, "doc_values": False}
_NUMBER = {"type": "long"}
_COUNTED = {"type": "long", "index": False}
_STORED = {"type": "keyword", "index": False, "doc_values": False}
_ANALYSIS = {
    # The words of Tantivy's `exact`: letters and digits in a row, without case and accents.
    "tokenizer": {"words": {"type": "pattern", "pattern": r"[\p{IsAlphabetic}\p{N}]+", "group": 0}},
    "filter": {"not_long": {"type": "length", "max": 100}},
    "analyzer": {"exact": {"tokenizer": "words", "filter": ["not_long", "lowercase", "asciifolding"]}},
}


def _state_fields() -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: {"type": "text", "analyzer": "exact"}
        for name in ("title", "headings", "text", "images", "anchor", "anchor_own", "words", "home")
    }
    for language in STEMMERS:
        fields[f"stem_{language}"] = {"type": "text", "analyzer": "whitespace", "index_options": "freqs"}
    fields |= dict.fromkeys(("kind", "key", "collection"), _KEYWORD)
    fields |= dict.fromkeys(("lang", "mime", "puid", "host", "domain"), _NAME)
    fields |= dict.fromkeys(("above", "site", "payload"), _SEARCHED)
    fields |= dict.fromkeys(("url", "digest", "long_key"), _STORED)
    fields |= dict.fromkeys(("page", "stamps", "valid_from", "valid_to", "last_seen"), _NUMBER)
    fields |= dict.fromkeys(("months", "likeness"), _COUNTED)
    fields["size"] = {"type": "long", "index": False, "doc_values": False}
    return fields


# --- documents ---


def page_name(key: str) -> str:
    """The name of a page: 16 hexadecimal digits. The names of its states begin with it."""
    return f"{tantivy_schema.page_number(key):016x}"


def documents_of(key: str, run: StateRun, anchors: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """One document for each collection in which the run was seen."""
    for fields in tantivy_schema.documents_of(key, run, anchors):
        del fields["run"]
        fields["page"] = signed(fields["page"])
        fields["url"] = fields["url"].decode("utf-8")
        fields["digest"] = fields["digest"].hex()
        fields["above"] = list(_above(key))
        if "likeness" in fields:
            fields["likeness"] = signed(fields["likeness"])
        counts = Counter(stamp // tantivy_schema.STAMP // 10**8 for stamp in fields["stamps"])
        fields["months"] = [
            month + MONTH * bit
            for month, count in counts.items()
            for bit in range(count.bit_length())
            if count >> bit & 1
        ]
        if len(key) > _LONGEST_KEY:
            fields |= {"key": indexed_key(key), "long_key": key}
        yield fields


def stored_of(source: Mapping[str, Any]) -> dict[str, list[Any]]:
    """A document in the form in which Tantivy returns it."""
    document = {name: value if isinstance(value, list) else [value] for name, value in source.items()}
    document["key"] = document.get("long_key", document["key"])
    document["url"] = [source["url"].encode("utf-8", "replace")]
    document["digest"] = [bytes.fromhex(source["digest"])]
    if "likeness" in source:
        document["likeness"] = [unsigned(source["likeness"])]
    return document


def indexed_key(key: str) -> str:
    return key[:_LONGEST_KEY]


def is_boundary(prefix: str) -> bool:
    """Whether keys that begin with this prefix have it in `above`."""
    return bool(
        prefix
        and len(prefix) <= _LONGEST_ABOVE
        and _BOUNDARY.match(prefix[-1])
        and len(_BOUNDARY.findall(prefix)) <= _MOST_ABOVE
    )


def _above(key: str) -> Iterator[str]:
    for number, match in enumerate(_BOUNDARY.finditer(key[:_LONGEST_ABOVE])):
        if number >= _MOST_ABOVE:
            return
        yield key[: match.end()]


def signed(number: int) -> int:
    return number - _SIGN if number >= _SIGN >> 1 else number


def unsigned(number: int) -> int:
    return number % _SIGN
