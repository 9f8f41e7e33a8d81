"""Forms are bounded in bytes and in fields, each kind by its own limits."""

import asyncio

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from webdepot.web.forms import LONG_FORM, PUBLIC_FORM, SHORT_FORM, read_form


def posted(body: bytes) -> Request:
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


@pytest.mark.parametrize("limits", [SHORT_FORM, PUBLIC_FORM, LONG_FORM])
def test_a_form_has_at_most_its_bytes_and_its_fields(limits):
    whole = b"a=" + b"x" * (limits.size_bytes - 2)
    assert len(asyncio.run(read_form(posted(whole), limits=limits))["a"]) == limits.size_bytes - 2
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read_form(posted(whole + b"x"), limits=limits))
    assert refused.value.status_code == 413
    many = "&".join(f"f{number}=" for number in range(limits.fields + 1)).encode()
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read_form(posted(many), limits=limits))
    assert refused.value.status_code == 400


def test_short_forms_are_the_shortest():
    assert SHORT_FORM.size_bytes == 16_384 and SHORT_FORM.fields == 100
    assert SHORT_FORM.size_bytes < PUBLIC_FORM.size_bytes < LONG_FORM.size_bytes
