"""Identifies formats of files."""

from pathlib import Path
from typing import Protocol

from webdepot.model import Format


class FormatIdentifier(Protocol):
    """Identifies the format of a file, first of all by its bytes."""

    @property
    def engine(self) -> str:
        """Names and versions of engine and signatures, recorded with each result."""

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        """The format of a payload. `name` is the URL or file name (its extension is weak evidence), `mime`
        the content type from the server, or empty.
        """
