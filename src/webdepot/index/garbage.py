"""Python's collector of cycles, asked to come less often while very many pages pass through.

A page on its way into the index makes thousands of objects and no cycle; looking for cycles among them took a
tenth of the time. Memory is bounded all the same: what has no cycle is freed at once, as ever.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = (100_000, 20, 50)


@contextmanager
def collected_rarely() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
