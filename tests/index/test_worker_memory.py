"""Mapped files do not count as memory of the process that has read them."""

import mmap
from pathlib import Path

import pytest

from webdepot.index.text import worker_memory

PAGES = 2000


def resident_bytes(path: Path) -> int:
    """How much of a file is in the memory of this process."""
    is_of_file, size = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, values = line.split(None, 1)
        if not name.endswith(":"):
            is_of_file = values.endswith(str(path))
        elif is_of_file and name == "Rss:":
            size += int(values.split()[0]) * 1024
    return size


def mapped(path: Path) -> mmap.mmap:
    path.parent.mkdir()
    path.write_bytes(b"".join(number.to_bytes(4, "big") * (mmap.PAGESIZE // 4) for number in range(PAGES)))
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def numbers(pages: mmap.mmap) -> list[int]:
    starts = range(0, len(pages), mmap.PAGESIZE)
    return [int.from_bytes(pages[start : start + 4], "big") for start in starts]


@pytest.mark.parametrize("name", ["a.store", "with a space.store"])
def test_files_of_the_index_are_released_after_they_were_read(tmp_path: Path, name: str):
    inside, outside = tmp_path / "index" / name, tmp_path / "other" / "a.store"
    with mapped(inside) as index, mapped(outside) as other:
        with worker_memory.mapped_files_released(tmp_path / "index"):
            assert numbers(index) == numbers(other) == list(range(PAGES))
        assert resident_bytes(outside) == PAGES * mmap.PAGESIZE
        assert resident_bytes(inside) == 0
        assert numbers(index) == list(range(PAGES))


def test_files_are_released_while_the_block_runs(tmp_path: Path):
    path = tmp_path / "index" / "a.store"
    with mapped(path) as index, worker_memory.mapped_files_released(path.parent):
        numbers(index)
        while resident_bytes(path):
            pass
