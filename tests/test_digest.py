"""Checksums: known values, both spellings, streams."""

import base64
import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot import digest
from webdepot.digest import Digest

EMPTY_SHA1 = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
ABC_SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}

digests = st.sampled_from(sorted(SIZES)).flatmap(
    lambda name: st.binary(min_size=SIZES[name], max_size=SIZES[name]).map(lambda value: Digest(name, value))
)


def test_known_values():
    assert str(digest.sha1(b"")) == EMPTY_SHA1
    assert str(digest.of_stream(io.BytesIO(b"abc"))[0]) == f"sha256:{ABC_SHA256}"
    assert digest.of_stream(io.BytesIO(b"abc"), "md5") == (Digest("md5", hashlib.md5(b"abc").digest()), 3)


@pytest.mark.parametrize(
    "spelled",
    [
        EMPTY_SHA1,
        EMPTY_SHA1.lower(),
        EMPTY_SHA1.removeprefix("sha1:"),
        "SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        " sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709\r\n",
    ],
)
def test_every_spelling_of_a_sha1_is_read(spelled):
    assert digest.parse(spelled) == digest.sha1(b"")
    assert digest.is_same(spelled, EMPTY_SHA1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "sha1:",
        "sha1",
        "crc32:00000000",
        "sha1:" + "0" * 32,
        "sha256:" + "g" * 64,
        EMPTY_SHA1[:-1],
        EMPTY_SHA1 + "A",
        "sha1:ß" + "A" * 30,
    ],
)
def test_a_text_that_is_not_a_digest_is_none_and_equals_nothing(text):
    assert digest.parse(text) is None
    assert not digest.is_same(text, text)


@given(digests)
def test_text_and_value_are_two_forms_of_one_thing(value):
    assert digest.parse(str(value)) == value
    assert digest.parse(f"{value.algorithm}:{value.value.hex().upper()}") == value
    padded = base64.b32encode(value.value).decode()
    assert digest.parse(f"{value.algorithm}:{padded}") == value
    assert digest.parse(f"{value.algorithm}:{padded.rstrip('=').lower()}") == value


@given(st.text())
def test_parse_takes_any_text(text):
    digest.parse(text)
    digest.parse("sha256:" + text)


@given(st.binary(max_size=5000), st.sampled_from(sorted(SIZES)))
def test_a_stream_gives_what_hashlib_gives(data, name):
    assert digest.of_stream(io.BytesIO(data), name) == (
        Digest(name, hashlib.new(name, data).digest()),
        len(data),
    )


def test_a_file_longer_than_a_chunk(tmp_path):
    data = bytes(range(256)) * (digest.CHUNK_BYTES // 256) + b"tail"
    (tmp_path / "file").write_bytes(data)
    assert digest.of_file(tmp_path / "file") == digest.of_stream(io.BytesIO(data))[0]
    assert digest.of_file(tmp_path / "file", "sha1") == digest.sha1(data)
