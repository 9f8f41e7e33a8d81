"""Signed reports: JSON that a third party can verify with the public key alone (Ed25519, RFC 8032).

    {"report": {…}, "signature": {"algorithm": "ed25519", "key": BASE64, "value": BASE64}}

The signature covers the bytes of `report` as JSON with sorted names, without spaces, in UTF-8. The private
key is in the home, readable by its owner only; it is created when it is first needed.
"""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from webdepot import durable
from webdepot.errors import CorruptData, InputError

LONGEST_BYTES = 256 << 20


def load_key(path: Path) -> Ed25519PrivateKey:
    """The private key of this archive, created now if there is none yet."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        return _make_key(path)
    except ValueError as error:
        raise CorruptData(
            f"The key {path} cannot be read: {error}. Restore it, or remove it to create a new one.",
            where=str(path),
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CorruptData(f"The key {path} is not an Ed25519 key.", where=str(path))
    return key


def to_base64(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode("ascii")


def sign(report: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The JSON document of a report with its signature."""
    value = base64.b64encode(key.sign(_bytes(report))).decode("ascii")
    signature = {"algorithm": "ed25519", "key": to_base64(key.public_key()), "value": value}
    return (
        json.dumps({"report": report, "signature": signature}, ensure_ascii=False, indent=1) + "\n"
    ).encode()


def check(data: bytes, *, key: str = "") -> str:
    """The public key that signed a report; CorruptData if the signature is wrong or is not by `key`."""
    if len(data) > LONGEST_BYTES:
        raise InputError(f"The report is larger than {LONGEST_BYTES} bytes, so it is not a signed report.")
    try:
        document = json.loads(data)
        signature = document["signature"]
        signer = Ed25519PublicKey.from_public_bytes(base64.b64decode(signature["key"], validate=True))
        value = base64.b64decode(signature["value"], validate=True)
        report = document["report"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"This is not a signed report: {error}.") from error
    try:
        signer.verify(value, _bytes(report))
    except InvalidSignature:
        raise CorruptData(
            "The signature is wrong: the report was changed after it was signed.", where="report"
        ) from None
    if key and key != to_base64(signer):
        raise CorruptData(f"The report is signed with another key: {to_base64(signer)}.", where="report")
    return to_base64(signer)


def _make_key(path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Exclusive: if two processes create the key at the same time, one of them fails instead of replacing it.
    with open(path, "xb", opener=_open_private) as file:
        file.write(data)
        durable.sync_file(file)
    durable.sync_folder(path.parent)
    return key


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _bytes(report: object) -> bytes:
    return json.dumps(report, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
