"""The last screenshots of a running harvest, for people who watch it.

    harvests/ID/pictures/7    a screenshot; list.json has the numbers of the last ones and their pages

The screenshots themselves are in the containers of the harvest. These copies are not made durable and are
deleted with the working folder.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER_NAME = "pictures"
MOST = 6
LARGEST_BYTES = 16 << 20
_LIST_NAME = "list.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPicture:
    number: int
    """Its number in the harvest, which is the name of its file."""
    url: str


class LastPictures:
    """Keeps the last screenshots of a crawl in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER_NAME
        self._pictures = list(read(folder))

    def add(self, url: str, picture: bytes) -> None:
        """Keep one more and forget the oldest. A full disk does not stop the harvest here: its next
        checkpoint will report that.
        """
        if len(picture) > LARGEST_BYTES:
            return
        number = self._pictures[-1].number + 1 if self._pictures else 1
        self._pictures.append(LastPicture(number=number, url=url))
        gone, self._pictures = self._pictures[:-MOST], self._pictures[-MOST:]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / str(number)).write_bytes(picture)
            new = self._folder / f"{_LIST_NAME}.new"
            new.write_text(json.dumps([[each.number, each.url] for each in self._pictures]), encoding="utf-8")
            new.replace(self._folder / _LIST_NAME)
            for each in gone:
                (self._folder / str(each.number)).unlink(missing_ok=True)
        except OSError:
            return


def read(folder: Path) -> Sequence[LastPicture]:
    """The last screenshots, oldest first; empty if there are none."""
    try:
        rows: list[Any] = json.loads((folder / FOLDER_NAME / _LIST_NAME).read_text(encoding="utf-8"))
        return [LastPicture(number=int(number), url=str(url)) for number, url in rows]
    except (OSError, ValueError, TypeError):
        return []


def find(folder: Path, number: int) -> bytes | None:
    """The bytes of one of the last screenshots; None if it is no longer one of them."""
    try:
        return (folder / FOLDER_NAME / str(number)).read_bytes()
    except OSError:
        return None
