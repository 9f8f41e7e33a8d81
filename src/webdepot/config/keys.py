"""A key of the configuration: its default, its description, and the checks of its value.

A check returns what is wrong with a value, or None; `config` runs it and names the key in the error.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

from webdepot import times

ValueCheck = Callable[[Any], str | None]


def key(default: Any, doc: str, check: ValueCheck | None = None) -> Any:
    """A configuration key: default, description, and a check that returns what is wrong with a value."""
    if isinstance(default, (dict, tuple)):
        return field(default_factory=lambda: default, metadata={"doc": doc, "check": check})
    return field(default=default, metadata={"doc": doc, "check": check})


def at_least(lowest: float) -> ValueCheck:
    return lambda value: None if value >= lowest else f"must be at least {lowest:g}"


def check_port(value: int) -> str | None:
    return None if 0 <= value <= 65535 else "must be a port from 0 (any free port) to 65535"


def check_postgresql(value: str) -> str | None:
    if value and not value.startswith("postgresql://"):
        return "must begin with postgresql://"
    if re.match(r"postgresql://[^/@]*:[^/@]*@", value):
        return "must not contain the password; set it in [database] password or WEBDEPOT_DATABASE_PASSWORD"
    return None


def check_scheduler(value: str) -> str | None:
    if value and not re.fullmatch(r"(tcp|tls)://[^/]+:\d+", value):
        return "must be an address such as tcp://batch.example.org:8786 or tls://batch.example.org:8786"
    return None


def check_search_nodes(value: str) -> str | None:
    if not all(re.fullmatch(r"https?://[^/@,\s]+/?", url) for url in value.split(",") if value):
        return (
            "must be an address such as https://search.example.org:9200, without user, password and path; "
            "several are separated by commas"
        )
    return None


def check_index_name(value: str) -> str | None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", value):
        return "must consist of lower-case letters, digits, - and _, and begin with a letter or digit"
    return None


def check_share(value: float) -> str | None:
    return None if 0 <= value <= 1 else "must be between 0 and 1"


def check_moment(value: str) -> str | None:
    try:
        times.from_timestamp(value or "2000")
    except ValueError:
        return "must be a timestamp of 4 to 14 digits, such as 2012 or 20120601"
    return None


def one_of(*known: str) -> ValueCheck:
    return lambda value: None if value in known else f"must be one of {', '.join(known)}"


def each_of(*known: str) -> ValueCheck:
    return lambda values: None if set(values) <= set(known) else f"may contain only {', '.join(known)}"


def check_networks(values: tuple[str, ...]) -> str | None:
    for text in values:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            return f"contains {text!r}, which is not a network. Write it like 192.0.2.0/24 or 2001:db8::/48"
    return None


def check_proxies(values: tuple[str, ...]) -> str | None:
    """Networks that are not too wide: anyone in them can claim any address."""
    wrong = check_networks(values)
    for text in () if wrong else values:
        network = ipaddress.ip_network(text, strict=False)
        if network.prefixlen < (8 if network.version == 4 else 16):
            return (
                f"contains {text}, which is too wide: anyone in it could claim any address. "
                "List only the proxies"
            )
    return wrong
