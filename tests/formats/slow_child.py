"""A child of a guard for its tests: looks at several files at a time, if it may, and never ends with some of them."""

import sys
from collections.abc import Iterator

from webdepot.formats import guard
from webdepot.formats.guard import Message


def _begin(_: list[str]) -> tuple[guard.Work, Message]:
    def work(questions: list[Message], descriptor: int, several: bool) -> Iterator[Message]:
        size = 3 if several else 1
        for start in range(0, len(questions), size):
            together = questions[start : start + size]
            while any(each["endless"] for each in together):
                pass
            yield from ({"number": each["number"], "several": several} for each in together)

    return work, {}


if __name__ == "__main__":
    guard.serve(sys.argv[1:], _begin)
