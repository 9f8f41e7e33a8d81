"""BagIt: the input is cut at lines of two hyphens into the declaration, two manifests and bag-info.txt."""

from fuzz.scratch import folder
from webdepot.depot.bundle import submission

TOKENS = (
    b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", b"\n--\n",
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  data/a.warc\n", b"data/",
    b"Payload-Oxum: 0.1\n", b"../", b"%0A", b"%25", b"*", b"./", b"\xff", b"\0", b"\n",
)  # fmt: skip
_NAMES = ("bagit.txt", "manifest-sha256.txt", "tagmanifest-sha512.txt", "bag-info.txt", "metadata")


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "data").mkdir()
        (place / "data" / "a.warc").write_bytes(b"")
        for name, content in zip(_NAMES, data.split(b"\n--\n")):
            (place / name).write_bytes(content)
        submission.open_up(place, place)
