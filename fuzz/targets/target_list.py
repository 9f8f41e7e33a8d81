"""Lists of sites that staff upload as CSV."""

from functools import cache

from fuzz.scratch import root
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.selection import csv_lists

TOKENS = (
    b"address,name,collection,purpose,strategy,note,contact_name,contact_mail,contact_language\n",
    b"address;name\n", b"http://a.example/", b'"', b'""', b",", b";", b"\t", b"\r\n", b"\n", b"heritage",
    b"evidence", b"selective", b"a@b.example", b"de", b"'=1", b"\xef\xbb\xbf", b"\0", b"\xff",
)  # fmt: skip


@cache
def _archive() -> Archive:
    home = root() / "home"
    if not home.exists():
        setup.create(home)
    return Archive.open(home)


def prepare() -> None:
    """Create the archive before the first input, outside of its limits."""
    _archive()


def one_input(data: bytes) -> None:
    csv_lists.preview(_archive(), data, keep=False)
