"""Folders of offline browsers (HTTrack, wget). Each file begins with `--- PATH`."""

from fuzz.scratch import folder
from fuzz.submissions import lay_out, read_object

TOKENS = (
    b"--- hts-log.txt\n",
    b"--- hts-cache/new.txt\n",
    b"--- www.a.example/index.html\n",
    b"--- www.a.example_8080/b.html\n",
    b"--- b.example/index.html\n",
    b"--- index.html\n",
    b"HTTrack3.49-2 launched on Sat, 12 Jun 2010 12:13:00 at http://www.a.example/ ",
    b"<!-- Mirrored from www.a.example/ by HTTrack Website Copier/3.x",
    b" [XR&CO'2014], Sat, 12 Jun 2010 12:13:00 GMT -->",
    b"\t",
    b"200\tadded ('OK')\ttext/html\t",
    b"/a/www.a.example/index.html",
    b"\\",
    b"_99999999",
    b"[::1]",
    b"%00",
    b"%",
    b"http://",
    b"@",
    b":0",
)


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "object").mkdir()
        lay_out(data, place / "object")
        read_object(place / "object", place)
