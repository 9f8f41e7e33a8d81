"""Pages that are loaded when first asked for: `from webdepot.web.later import search` stands for the module
`webdepot.web.search`.

A server that only replays needs no full-text engine, no crawler, no format identification; together they
would cost it as much memory as everything else. An attribute of such a stand-in is an endpoint that imports
its module, in a thread, on the first request.
"""

import importlib
from collections.abc import Awaitable, Callable
from functools import cache
from inspect import iscoroutinefunction
from threading import Lock
from types import ModuleType
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

_loading = Lock()


def __getattr__(name: str) -> "Later":
    if name.startswith("_"):
        raise AttributeError(name)
    return Later(f"webdepot.web.{name}")


class Later:
    """A module of pages that is not there yet."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        return _endpoint(self._module, name)


def load(module: str) -> ModuleType:
    """Import a module of pages. One at a time: two threads that import modules which need each other may see
    one of them half made.
    """
    with _loading:
        return importlib.import_module(module)


def _endpoint(module: str, name: str) -> Callable[[Request], Awaitable[Response]]:
    @cache
    def found() -> Callable[[Request], Any]:
        endpoint: Callable[[Request], Any] = getattr(load(module), name)
        return endpoint

    async def called(request: Request) -> Response:
        endpoint = found() if found.cache_info().currsize else await run_in_threadpool(found)
        response: Response = await (
            endpoint(request) if iscoroutinefunction(endpoint) else run_in_threadpool(endpoint, request)
        )
        return response

    called.__name__ = called.__qualname__ = name
    called.__module__ = module
    return called
