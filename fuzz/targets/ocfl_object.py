"""OCFL objects of others: each file begins with `--- PATH`. Sidecars get the digest of their inventories,
which mutation alone would not find.
"""

import hashlib

from fuzz.scratch import folder
from fuzz.submissions import lay_out, read_object

TOKENS = (
    b"--- 0=ocfl_object_1.1\nocfl_object_1.1\n",
    b"--- inventory.json\n",
    b"--- inventory.json.sha512\n",
    b"--- v1/inventory.json\n",
    b"--- v1/content/a.txt\n",
    b"--- 0=ocfl_1.1\nocfl_1.1\n",
    b"--- o/0=ocfl_object_1.1\n",
    b'{"id": "urn:a", "type": "https://ocfl.io/1.1/spec/#inventory", "digestAlgorithm": "sha512", ',
    b'"head": "v1", ',
    b'"manifest": {"',
    b'": ["v1/content/a.txt"]}, ',
    b'"versions": {"v1": {"created": "2020-01-01T00:00:00Z", "state": {"',
    b'"contentDirectory": "',
    b'"fixity": {"md5": {"',
    b"cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
    b"../",
    b"null",
    b"[",
    b"{",
    b"v2",
    b"1e999",
    b'"\\ud800"',
)


def one_input(data: bytes) -> None:
    with folder() as place:
        top = place / "object"
        top.mkdir()
        lay_out(data, top)
        for inventory in top.rglob("inventory.json"):
            if inventory.is_file():
                value = hashlib.sha512(inventory.read_bytes()).hexdigest()
                if not (sidecar := inventory.with_name("inventory.json.sha512")).is_dir():
                    sidecar.write_text(f"{value} inventory.json\n")
        read_object(top, place)
