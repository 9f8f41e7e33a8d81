"""Signed reports: JSON that a third party can check with nothing but a public key (Ed25519, RFC 8032).

    {"report": {…}, "signature": {"algorithm": "ed25519", "key": BASE64, "value": BASE64}}

The signature is over the bytes of `report` as JSON with sorted names, no spaces, in UTF-8. The private key
stands in the home, for its owner alone; it is made when it is first needed.
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

from webdepot.errors import CorruptData, InputError

LONGEST_BYTES = 256 << 20


def load_key(path: Path) -> Ed25519PrivateKey:
    """The key of this archive, made now if there is none yet."""
    try:
        found = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        return _make_key(path)
    except ValueError as error:
        raise CorruptData(
            f"The key {path} cannot be read: {error}. Restore it, or remove it to make a new one.",
            where=str(path),
        ) from error
    if not isinstance(found, Ed25519PrivateKey):
        raise CorruptData(f"The key {path} is of another kind than Ed25519.", where=str(path))
    return found


def public_words(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode("ascii")


def sign(report: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    value = base64.b64encode(key.sign(_bytes(report))).decode("ascii")
    signature = {"algorithm": "ed25519", "key": public_words(key.public_key()), "value": value}
    return (
        json.dumps({"report": report, "signature": signature}, ensure_ascii=False, indent=1) + "\n"
    ).encode()


def check(data: bytes, *, key: str = "") -> str:
    """The public key that signed; CorruptData when the report is not what was signed, or signed by another
    key than the given one.
    """
    if len(data) > LONGEST_BYTES:
        raise InputError("The report is larger than a report may be.")
    try:
        document = json.loads(data)
        signature = document["signature"]
        signer = Ed25519PublicKey.from_public_bytes(base64.b64decode(signature["key"], validate=True))
        value = base64.b64decode(signature["value"], validate=True)
        report = document["report"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"This is no signed report: {error}.") from error
    try:
        signer.verify(value, _bytes(report))
    except InvalidSignature:
        raise CorruptData(
            "The signature is wrong: the report was changed after it was signed.", where="report"
        ) from None
    if key and key != public_words(signer):
        raise CorruptData(f"The report is signed with another key: {public_words(signer)}.", where="report")
    return public_words(signer)


def _make_key(path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return key


def _bytes(report: object) -> bytes:
    return json.dumps(report, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
