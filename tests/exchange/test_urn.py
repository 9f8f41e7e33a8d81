"""URN:NBN against the published vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import InputError
from webdepot.exchange import urn

PUBLISHED = [
    "urn:nbn:de:gbv:089-3321752945",
    "urn:nbn:de:1111-2005041114",
    "urn:nbn:de:1111-2005051906",
    "urn:nbn:de:bsz:352-2-cq48vlxjriyc5",
    "urn:nbn:de:hbz:385-2902",
    "urn:nbn:de:kobv:11-100239432",
    "urn:nbn:de:swb:14-opus-87650",
    "urn:nbn:de:1111-2004033116",
    "urn:nbn:de:1111-2005041208",
    "urn:nbn:de:1111-2005041212",
    "urn:nbn:de:1111-2005041220",
    "urn:nbn:de:1111-2005041239",
    "urn:nbn:de:1111-2004092429",
    "urn:nbn:de:1111-2005041102",
]


@pytest.mark.parametrize("known", PUBLISHED)
def test_published_vectors(known):
    assert urn.check_digit(known[:-1]) == int(known[-1])
    assert urn.is_valid(known)
    assert urn.is_valid(known.upper())
    assert not urn.is_valid(known[:-1] + str((int(known[-1]) + 1) % 10))
    namespace, _, local = known[:-1].partition("-")
    assert urn.mint(namespace, local) == urn.mint(f"{namespace}-", local) == known


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "urn:nbn:de:1111",
        "urn:uuid:1-2",
        "urn:nbn:de:1111-",
        "urn:nbn:de:x-ü5",
        "nbn:de:1-1",
        "urn:nbn:de:1111-2005041114\n",
    ],
)
def test_what_is_none(wrong):
    assert not urn.is_valid(wrong)


@pytest.mark.parametrize(
    ("namespace", "local"),
    [
        ("urn:nbn:de", ""),
        ("urn:nbn:de:x", "a b"),
        ("urn:nbn:de:x", "ü"),
        ("urn:isbn", "1"),
        ("", "1"),
        ("urn:nbn:de:x", "1" * 600),
    ],
)
def test_what_cannot_be_minted(namespace, local):
    with pytest.raises(InputError):
        urn.mint(namespace, local)


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-:_/.+ABC", min_size=1, max_size=60))
def test_minted_is_valid(local):
    assert urn.is_valid(urn.mint("urn:nbn:de:example", local))


@given(st.text())
def test_any_text_has_an_answer(text):
    assert urn.is_valid(text) in (True, False)
    assert urn.is_nbn(text) in (True, False)
