"""Links of PDF files."""

from fuzz.scratch import root
from webdepot.guard.batch import PayloadSlice
from webdepot.harvest.links import pdf

TOKENS = (
    b"%PDF-1.4\n", b"1 0 obj\n", b"endobj\n", b"<<", b">>", b"/Type /Catalog", b"/Pages 2 0 R",
    b"/Kids [3 0 R]", b"/Count 1", b"/Annots [", b"/A << /S /URI /URI (http://a.example/) >>", b"/Type /Page",
    b"stream\n", b"endstream\n", b"xref\n0 5\n", b"trailer\n", b"startxref\n", b"%%EOF\n",
    b"/Filter /FlateDecode", b"/Length 10", b"/Root 1 0 R", b"/ObjStm", b"/Prev 0", b"/Encrypt", b"/XRef",
    b"/W [1 2 1]", b"/Parent 2 0 R", b"0000000000 65535 f \n", b"(", b")", b"<fe", b"\\",
)  # fmt: skip


def one_input(data: bytes) -> None:
    """Read links as the guarded process does, but in this process, so that the fuzzer's limits and coverage
    apply.
    """
    path = root() / "a.pdf"
    path.write_bytes(data)
    with path.open("rb") as stream:
        piece = PayloadSlice(descriptor=stream.fileno(), offset=0, size_bytes=len(data))
        answer = pdf._answer({"links": 1000}, piece)
    assert answer.get("error") != "MemoryError", answer
    assert len(answer.get("links", [])) <= 1000
