"""Files of seeds and SURT prefixes, as Heritrix reads them: one entry on each line, `#` begins a comment.

    http://www.example.org/news/      a seed
    +http://(org,example,             accept everything of example.org and of the hosts below it
    +http://(org,example,www,)/news   accept what begins with this
    +example.org/news/                the same, deduced from an address
    -http://(org,example,)/private    reject what begins with this

A prefix becomes the start of our keys, in which `www.` and https are not distinguished.
https://heritrix.readthedocs.io/en/latest/glossary.html
"""

import re
from dataclasses import dataclass, field

from webdepot.errors import InputError
from webdepot.url import find_canonical, key

MOST_LINES = 100_000
_SURT = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?\((?P<host>[^()/@\s]*)(?P<rest>\)\S*)?\Z")
_WWW = re.compile(r"www\d*\Z", re.ASCII)
_IPV4 = re.compile(r"(\d{1,3}\.){3}\d{1,3}\Z", re.ASCII)


@dataclass(slots=True, kw_only=True)
class SeedFile:
    seeds: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    """Prefixes of keys."""
    rejected: list[str] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Line number and what is wrong with it."""


def read(raw: bytes, *, seeds_are_prefixes: bool = False) -> SeedFile:
    """Read a file. With `seeds_are_prefixes`, plain addresses are prefixes, as in a file of SURT prefixes.
    Seeds without a slash after the host stand for their whole domain, as in Heritrix.
    """
    result = SeedFile()
    lines = raw.decode("utf-8-sig", "replace").splitlines()
    if len(lines) > MOST_LINES:
        raise InputError(f"The file has more than {MOST_LINES:,} lines. Split it into parts.")
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            _add(result, text, seeds_are_prefixes)
        except InputError as error:
            result.bad.append((number, str(error)))
    return result


def _add(result: SeedFile, text: str, seeds_are_prefixes: bool) -> None:
    if text[0] in "+-":
        chosen = result.accepted if text[0] == "+" else result.rejected
        chosen += prefixes_of(text[1:].strip())
    elif seeds_are_prefixes or "(" in text.partition("/?")[0][:20]:
        result.accepted += prefixes_of(text)
    else:
        url = _address(text)
        result.seeds.append(url)
        if "/" not in text.partition("://")[2 if "://" in text else 0]:
            result.accepted += prefixes_of(text)


def prefixes_of(text: str) -> list[str]:
    """The starts of keys that a SURT prefix, or the prefix that an address implies, covers; InputError if it
    is neither.
    """
    surt = _SURT.match(text.lower())
    if surt is not None:
        return _of_surt(surt["host"], surt["rest"] or "")
    if "(" in text[:20]:
        raise InputError(f"{text[:100]!r} is not a SURT prefix such as http://(org,example,www,)/path")
    url_key = key(_address(text))
    host, _, path = url_key.partition(")")
    rest = text.partition("://")[2] if "://" in text else text
    if "/" not in rest:
        return _open(host.split(","))
    if rest.endswith("/"):
        return [f"{host}){path.rstrip('/')}/"]
    return [f"{host}){path.rpartition('/')[0]}/"]


def _of_surt(host: str, rest: str) -> list[str]:
    name, colon, port = host.partition(":")
    labels = name.rstrip(",").split(",")
    if _IPV4.match(name.rstrip(",")):
        labels = key(f"http://{name.rstrip(',')}/").partition(")")[0].split(",")
    if not all(labels):
        raise InputError(f"{host[:100]!r} has an empty part.")
    if rest:
        labels = labels[:-1] if len(labels) > 2 and _WWW.match(labels[-1]) else labels
        return [",".join(labels) + colon + port + rest]
    if not name.endswith(","):
        if len(labels) < 2:
            raise InputError(
                f"({host[:100]} covers a part of a top-level domain. Write ({host[:100]}, instead."
            )
        return [",".join(labels) + colon + port]
    return _open(labels)


def _open(labels: list[str]) -> list[str]:
    """A host on every port, and all hosts below it."""
    below = ",".join(labels)
    host = ",".join(labels[:-1]) if len(labels) > 2 and _WWW.match(labels[-1]) else below
    return [f"{host})", *([f"{host}:"] if "," in host else []), f"{below},"]


def _address(text: str) -> str:
    url = find_canonical(text if "://" in text else f"http://{text}")
    if url is None or not url.startswith(("http://", "https://")):
        raise InputError(f"{text[:100]!r} is neither a web address nor a SURT prefix.")
    return url
