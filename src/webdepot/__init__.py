"""A complete web archive. Programs begin with `Archive`:

from webdepot import Archive
"""

from importlib import import_module
from typing import Any

__all__ = ["Archive"]


def __getattr__(name: str) -> Any:
    """Import `Archive` on first use, so that `webdepot --help` does not load the database."""
    if name != "Archive":
        raise AttributeError(f"module 'webdepot' has no attribute {name!r}")
    return import_module("webdepot.archive").Archive
