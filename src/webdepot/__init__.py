"""A complete web archive. Programs begin with `Archive`:

from webdepot import Archive
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webdepot.archive import Archive

__all__ = ["Archive"]


def __getattr__(name: str) -> Any:
    """`Archive`, imported when it is asked for: `webdepot --help` needs no database."""
    if name != "Archive":
        raise AttributeError(f"module 'webdepot' has no attribute {name!r}")
    from webdepot.archive import Archive

    return Archive
