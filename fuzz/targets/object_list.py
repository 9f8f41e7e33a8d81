"""Lists of objects in CSV files, with two files and a folder beside them."""

import shutil

from fuzz.scratch import folder
from fuzz.submissions import read_object
from webdepot.services.intake import object_lists

TOKENS = (
    b"filename,title,creator,date,type,journal,issn,volume,issue\n",
    b"a/thesis.pdf,Clocks,",
    b"dc.title[en],",
    b"a|b.txt",
    b"../list.csv",
    b"object.csv",
    b"article",
    b'"',
    b'""',
    b";",
    b"\t",
    b"|",
    b"\r",
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf",
    b"1234-5679",
)


def one_input(data: bytes) -> None:
    with folder() as place:
        for name in ("a/thesis.pdf", "b.txt", "object.csv"):
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(name.encode())
        path = place / "list.csv"
        path.write_bytes(data)
        if not object_lists.is_list(path):
            return
        for listed in object_lists.read(path):
            (place / "work").mkdir()
            top = object_lists.lay_out(listed, place / "work")
            read_object(top, place, listed)
            shutil.rmtree(place / "work")
        for name in ("a/thesis.pdf", "b.txt", "object.csv"):
            assert (place / name).read_bytes() == name.encode(), "a file of the sender was changed"
