"""ARC files, plain and packed. An input that does not begin like one gets the usual first record."""

from fuzz.container_records import read_all
from webdepot.container.members import packed
from webdepot.errors import InputError

TOKENS = (
    b"filedesc://a.arc 0.0.0.0 20000101000000 text/plain ",
    b"1 0 A\nURL IP-address Archive-date Content-type Archive-length\n",
    b"2 0 A\nURL IP-address Archive-date Content-type Result-code Checksum Location Offset ",
    b"Filename Archive-length\n", b"http://a.example/ 127.0.0.1 20000101000000 text/html ",
    b"HTTP/1.0 200 OK\r\n", b"\r\n\r\n", b"\n\n", b" - ", b"dns:a.example", b"20000101", b"no-type",
    b"\x1f\x8b\x08\0",
)  # fmt: skip
_FIRST = (
    b"filedesc://a.arc 0.0.0.0 20000101000000 text/plain 68\n"
    b"1 0 A\nURL IP-address Archive-date Content-type Archive-length\n\n"
)


def one_input(data: bytes) -> None:
    if not data.startswith((b"filedesc:", b"\x1f\x8b")):
        data = _FIRST + data
    for form in (data, packed(data)):
        try:
            read_all(form)
        except InputError:
            continue
