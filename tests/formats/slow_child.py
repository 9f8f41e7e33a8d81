"""A child of a guard for its tests: looks at several files at a time, if it may, and never ends with some of
them, whether it takes time or memory. It keeps the memory of others permanently.
"""

import sys
import time
from collections.abc import Iterator

from webdepot.guard import child
from webdepot.guard.child import Message


def _begin(_: list[str]) -> tuple[child.Work, Message]:
    kept = []

    def work(questions: list[Message], descriptor: int, several: bool) -> Iterator[Message]:
        size = 3 if several else 1
        for start in range(0, len(questions), size):
            together = questions[start : start + size]
            hoard = bytearray(sum(each.get("hungry", 0) for each in together))
            kept.extend(b"x" * each["kept"] for each in together if "kept" in each)
            time.sleep(max(each.get("sleep_s", 0) for each in together))
            while hoard or any(each["endless"] for each in together):
                time.sleep(0.001 if hoard else 0)
            yield from ({"number": each["number"], "several": several} for each in together)

    return work, {}


if __name__ == "__main__":
    child.serve(sys.argv[1:], _begin)
