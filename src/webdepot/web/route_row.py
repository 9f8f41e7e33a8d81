"""A row of the route tables: a path with its function, its methods and the roles that may call it.

A function is named as text and its module is imported on the first request for it: a server that only replays
archived pages loads no crawler, no search engine and no format identification. A test checks that every name
leads to a function that takes a request and returns a response.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from starlette.requests import Request

from webdepot.accounts.roles import Role

Endpoint = Callable[[Request], Any]


ALL = re.compile(b"")
LISTS = re.compile(rb"/[^/]+/(?:[0-9]*(?:\*|%2[Aa])|timemap/)")
"""Versions of an address, for people and for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    """A row of the route table."""

    path: str
    endpoint: str
    """Module below `webdepot.web` and function, as in "staff.targets.target_page:show"."""
    methods: tuple[str, ...] = ("GET",)
    roles: frozenset[Role] = field(default_factory=frozenset)
    """A person with any of these may call it; empty means everybody."""
    heavy: re.Pattern[bytes] | None = None
    """Raw paths whose answers take long (`heavy_work.py`)."""


@cache
def load_endpoint(name: str) -> Endpoint:
    """The function with this name, as in "staff.targets.target_page:show"; imports its module."""
    module, _, function = name.partition(":")
    endpoint: Endpoint = getattr(import_module(f"webdepot.web.{module}"), function)
    return endpoint
