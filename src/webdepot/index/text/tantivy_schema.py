"""Fields and documents of the Tantivy index. https://docs.rs/tantivy

One index holds four kinds of documents: states (one per run of a page and collection, see `states.py`), runs
of captures in which the page is gone, containers that are in the index, and revisits whose original has not
been seen yet. One commit makes all documents of a container visible, together with its own.

    field        form                          use
    kind         raw                           `state`, `gone`, `container`, `waiting`
    name         raw, stored                   container: its name; waiting: the digest it waits for
    run          raw                           page number and first capture: handle for replacing
    page         u64 fast                      hash of the key: one hit per page, ranges for scanning
    key          raw, stored
    title        exact, stored
    anchor       exact, stored                 texts of links from other sites
    anchor_own   exact, stored                 texts of links from the site itself
    headings     exact, stored
    words        exact                         words of the address
    home         exact                         title, headings and address of a site's home page once more
    images       exact, stored                 file names and descriptions of images
    text         exact, positions, stored      phrases, snippets
    stem_xx      stemmed, frequencies          of the detected language only
    site         raw, many                     host and every domain above it
    host, domain, lang, mime, puid, collection   raw fast    filters and facets
    payload      raw, many, stored             digests, for revisits
    stamps       u64 fast, many, stored        14-digit capture time × 100 + its number within that second
    months       u64 fast, many                YYYYMM of each capture + 10⁶ × its number within that month
    valid_from, valid_to, last_seen   u64 fast as of a date, order by time
    likeness     u64 fast                      simhash, for near-duplicate texts
    url, size, digest   stored

Weights are in `weights.py`. A histogram of Tantivy counts a document once for each bucket; the numbers added
to `stamps` and `months` make the value of every capture unique, so that captures are counted and not
documents.

Exact words come first, stems only add recall with a low weight: Tantivy's Dutch stemmer gives `gemeente` and
`menen` the same stem. Phrases and excluded words are never stemmed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import tantivy

from webdepot.index.text.hits import address_words, sites_of
from webdepot.index.text.states import Content, StateRun
from webdepot.index.text.weights import WEIGHTS, RankedPart
from webdepot.index.text.words import prepared, shown
from webdepot.index.word_analysis import STEMMERS, stems
from webdepot.url import domain_of, host_of

_FIELDS = {RankedPart.ADDRESS: "words", RankedPart.IMAGE: "images"}
"""Fields whose name is not that of their part."""
FIELD_WEIGHTS = {_FIELDS.get(part, part.value): weight for part, weight in WEIGHTS.items()}
STAMP = 100
MONTH = 10**6


def make() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in ("kind", "run", "site"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("name", "key", "payload"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("lang", "mime", "collection", "puid", "host", "domain"):
        builder.add_text_field(name, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "headings", "text", "images", "anchor", "anchor_own"):
        builder.add_text_field(name, stored=True, tokenizer_name="exact", index_option="position")
    for name in ("words", "home"):
        builder.add_text_field(name, tokenizer_name="exact", index_option="position")
    for language in STEMMERS:
        builder.add_text_field(f"stem_{language}", tokenizer_name="stemmed", index_option="freq")
    for name in ("url", "digest"):
        builder.add_bytes_field(name, stored=True)
    builder.add_unsigned_field("size", stored=True)
    for name in ("page", "valid_from", "valid_to", "last_seen"):
        builder.add_unsigned_field(name, stored=name.startswith("valid"), indexed=True, fast=True)
    builder.add_unsigned_field("likeness", stored=True, fast=True)
    builder.add_unsigned_field("stamps", stored=True, indexed=True, fast=True)
    builder.add_unsigned_field("months", fast=True)
    return builder.build()


# --- documents ---


def page_number(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def run_name(page: int, valid_from: int) -> str:
    return f"{page:016x}-{valid_from}"


def documents_of(key: str, run: StateRun, anchors: tuple[str, str] = ("", "")) -> Iterator[dict[str, Any]]:
    """One document for each collection in which the run was seen. `anchors`: texts of links from other sites
    and from the page's own.
    """
    content, page = run.content, page_number(key)
    common: dict[str, Any] = {
        "kind": "gone" if content.gone else "state",
        "run": run_name(page, run.valid_from),
        "page": page,
        "key": key,
        "url": content.url.encode("utf-8", "replace"),
        "mime": content.mime,
        "size": content.size_bytes,
        "digest": content.words,
        "lang": content.language,
        "valid_from": run.valid_from,
        "valid_to": run.valid_to,
    }
    if not content.gone:
        common |= _words_of(key, content, anchors)
    for collection in sorted({capture.collection for capture in run.seen}):
        stamps = [capture.stamp for capture in run.seen if capture.collection == collection]
        yield {
            **common,
            "collection": collection,
            "last_seen": stamps[-1],
            "stamps": _numbered(stamps),
            "months": _months(stamps),
        }


def _words_of(key: str, content: Content, anchors: tuple[str, str]) -> dict[str, Any]:
    title, headings, address = prepared(content.title), prepared(content.headings), address_words(content.url)
    sites, domain = _places_of(host_of(content.url))
    fields: dict[str, Any] = {
        "words": address,
        "site": sites,
        "host": sites[0],
        "domain": domain,
        "title": title,
        "headings": headings,
        "text": prepared(content.text),
        "puid": content.format,
        "likeness": content.likeness,
        "payload": sorted(content.payloads),
    }
    if is_home_page(key):
        fields["home"] = f"{title}\n{headings}\n{address}"
    if content.images:
        fields["images"] = prepared(content.images)
    fields |= {
        name: prepared(text) for name, text in zip(("anchor", "anchor_own"), anchors, strict=True) if text
    }
    if content.language in STEMMERS:
        fields[f"stem_{content.language}"] = stems(content.language).of(
            f"{content.title}\n{content.headings}\n{content.text}"
        )
    return fields


def is_home_page(key: str) -> bool:
    return key.partition(")")[2] == "/"


def content_of(document: dict[str, list[Any]]) -> Content:
    """The content of a stored document."""
    return Content(
        url=bytes(document["url"][0]).decode("utf-8"),
        mime=document["mime"][0],
        size_bytes=document["size"][0],
        title=_stored(document, "title"),
        headings=_stored(document, "headings"),
        text=_stored(document, "text"),
        language=document["lang"][0],
        words=bytes(document["digest"][0]),
        payloads=frozenset(document.get("payload", ())),
        format=_stored(document, "puid"),
        likeness=document.get("likeness", [0])[0],
        images=_stored(document, "images"),
        gone="text" not in document,
    )


def anchors_of(document: dict[str, list[Any]]) -> tuple[str, str]:
    return _stored(document, "anchor"), _stored(document, "anchor_own")


def stamps_of(document: dict[str, list[Any]]) -> list[int]:
    """Capture times as numbers of 14 digits, ascending."""
    return [stamp // STAMP for stamp in document["stamps"]]


def _stored(document: dict[str, list[Any]], name: str) -> str:
    return shown(document[name][0]) if name in document else ""


def _numbered(stamps: Sequence[int]) -> list[int]:
    if len(stamps) == 1:
        return [stamps[0] * STAMP]
    seen: Counter[int] = Counter()
    numbered = []
    for stamp in stamps:
        numbered.append(stamp * STAMP + min(seen[stamp], STAMP - 1))
        seen[stamp] += 1
    return numbered


def _months(stamps: Sequence[int]) -> list[int]:
    if len(stamps) == 1:
        return [stamps[0] // 10**8]
    seen: Counter[int] = Counter()
    months = []
    for stamp in stamps:
        month = stamp // 10**8
        months.append(seen[month] * MONTH + month)
        seen[month] += 1
    return months


@lru_cache(maxsize=10_000)
def _places_of(host: str) -> tuple[list[str], str]:
    url = f"http://{host}/"
    sites = list(sites_of(url))
    return sites, domain_of(url) or sites[0]
