"""Objects of loose files with a description beside them, also in a bag: each file begins with `--- PATH`."""

from fuzz.scratch import folder
from fuzz.submissions import lay_out, read_object

TOKENS = (
    b"--- dc.xml\n",
    b"--- thesis.pdf\n",
    b"--- data/a.xml\n",
    b"--- metadata/mods.xml\n",
    b"--- bagit.txt\n",
    b"--- manifest-md5.txt\n",
    b"--- record.xml\n",
    b"d41d8cd98f00b204e9800998ecf8427e  data/a.xml\n",
    b"<dublin_core schema='dc'><dcvalue element='title'>",
    b"<dc:title>",
    b"<mods xmlns='http://www.loc.gov/mods/v3'>",
    b"<titleInfo><title>",
    b"<dateIssued>",
    b"<article><front><article-meta>",
    b"<pub-date><year>",
    b"<volume>",
    b"<issn>",
    b"<record xmlns='http://www.loc.gov/MARC21/slim'>",
    b"<datafield tag='773' ind1='0' ind2=' '>",
    b"<subfield code='g'>",
    b"External-Identifier: ",
    b"--- www.a.example/index.html\n",
)


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "object").mkdir()
        lay_out(data, place / "object")
        read_object(place / "object", place)
