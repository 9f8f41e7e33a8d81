"""Signed reports: JSON that a third party can verify with the public key alone (Ed25519, RFC 8032).

    {"report": {…}, "signature": {"algorithm": "ed25519", "key": BASE64, "value": BASE64}}

The signature covers the bytes of `report` in canonical form (JCS, RFC 8785): names sorted, no spaces, UTF-8.
Reports have no fractions and only ASCII names, so Python's JSON writes that form. The private key is in the
home, readable by its owner only; it is created when it is first needed.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from webdepot import durable
from webdepot.errors import CorruptData, InputError

LONGEST_BYTES = 256 << 20


def key_path(home: Path) -> Path:
    """The file of the private key of the archive in this home."""
    return home / "keys" / "report.pem"


def load_key(path: Path) -> Ed25519PrivateKey:
    """The private key of this archive, created now if there is none yet."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        _make_key(path)
        data = path.read_bytes()
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except ValueError as error:
        raise CorruptData(
            f"The key {path} cannot be read: {error}. Restore it, or remove it to create a new one.",
            where=str(path),
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CorruptData(f"The key {path} is not an Ed25519 key. Restore it from a backup.", where=str(path))
    return key


def to_base64(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode("ascii")


def to_pem(key: Ed25519PublicKey) -> bytes:
    """The public key as a PEM file, which `openssl` reads."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def from_pem(data: bytes) -> str:
    """The public key of a PEM file in base64; InputError if it is not an Ed25519 key."""
    try:
        key = serialization.load_pem_public_key(data)
    except ValueError as error:
        raise InputError(f"This is not a public key: {error}.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("This is not an Ed25519 public key.")
    return to_base64(key)


def sign(report: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The JSON document of a report with its signature."""
    value = base64.b64encode(key.sign(_bytes(report))).decode("ascii")
    signature = {"algorithm": "ed25519", "key": to_base64(key.public_key()), "value": value}
    return (
        json.dumps({"report": report, "signature": signature}, ensure_ascii=False, indent=1) + "\n"
    ).encode()


def check(data: bytes, *, key: str = "") -> str:
    """The public key that signed a report; CorruptData if the signature is wrong or is not by `key`."""
    return check_document(data, key=key)[0]


def check_document(data: bytes, *, key: str = "") -> tuple[str, dict[str, Any]]:
    """The public key that signed a document, and its report; errors as `check`."""
    if len(data) > LONGEST_BYTES:
        raise InputError(f"The report is larger than {LONGEST_BYTES} bytes, so it is not a signed report.")
    try:
        document = json.loads(data)
        signature = document["signature"]
        signer = Ed25519PublicKey.from_public_bytes(base64.b64decode(signature["key"], validate=True))
        value = base64.b64decode(signature["value"], validate=True)
        report = dict(document["report"])
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
    return to_base64(signer), report


def _make_key(path: Path) -> None:
    data = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # If two processes create it at the same time, the second finds the key of the first.
    with durable.locked(path.with_name(path.name + ".lock")):
        if not path.exists():
            durable.write_whole(path, data, mode=0o600)


def _bytes(report: object) -> bytes:
    return json.dumps(report, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
