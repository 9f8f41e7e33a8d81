"""Requests to the OAI-PMH provider, and resumption tokens, also signed ones with changed content."""

import base64
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from webdepot.exchange.oai import protocol
from webdepot.exchange.oai.protocol import OaiError, OaiVerb

TOKENS = (
    b"verb=ListRecords", b"verb=Identify", b"verb=GetRecord", b"&metadataPrefix=oai_dc", b"&from=2020-01-01",
    b"&until=2020-01-01T00:00:00Z", b"&set=a:b", b"&identifier=oai:a:1", b"&resumptionToken=",
    b"verb=ListSets", b"0000-00-00", b"9999-12-31", b"%00",
)  # fmt: skip
_SECRET = b"fuzz"
_NOW = datetime(2020, 1, 1, tzinfo=UTC)


def one_input(data: bytes) -> None:
    text = data.decode("latin-1")
    for token in (text, base64.urlsafe_b64encode(data).decode()):
        with suppress(OaiError):
            protocol.from_token(token, OaiVerb.LIST_RECORDS, _SECRET, _NOW)
    try:
        arguments = protocol.parse(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
        if arguments.token is not None:
            protocol.from_token(arguments.token, arguments.verb, _SECRET, _NOW)
    except (OaiError, ValueError) as error:
        if not isinstance(error, OaiError) and "max number of fields" not in str(error).lower():
            raise
