"""The protocol OAI-PMH 2.0: arguments of requests, the eight errors, dates, resumption tokens; independent of
our catalogue.

http://www.openarchives.org/OAI/openarchivesprotocol.html. A request is a list of pairs, by GET or POST.
`parse` checks verb and arguments in the order of the specification and raises `OaiError` with all problems.

A resumption token contains the complete state of a list (there is no session on the server): verb, prefix,
set, from, until, the time of the first request, datestamp and key of the last item sent, the numbers of items
sent and in total, and its expiry; signed with HMAC-SHA-256.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from webdepot.times import from_iso

OAI = "http://www.openarchives.org/OAI/2.0/"
SCHEMA = "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd"
LONGEST_TOKEN = 4000
_SIGNATURE_BYTES = 16
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
_SECOND = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z", re.ASCII)
_SPEC = re.compile(r"[A-Za-z0-9\-_.!~*'()]+(?::[A-Za-z0-9\-_.!~*'()]+)*\Z", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+\Z", re.ASCII)


class OaiVerb(StrEnum):
    IDENTIFY = "Identify"
    LIST_METADATA_FORMATS = "ListMetadataFormats"
    LIST_SETS = "ListSets"
    GET_RECORD = "GetRecord"
    LIST_IDENTIFIERS = "ListIdentifiers"
    LIST_RECORDS = "ListRecords"


class Code(StrEnum):
    BAD_VERB = "badVerb"
    BAD_ARGUMENT = "badArgument"
    BAD_RESUMPTION_TOKEN = "badResumptionToken"  # noqa: S105 - no password
    CANNOT_DISSEMINATE_FORMAT = "cannotDisseminateFormat"
    ID_DOES_NOT_EXIST = "idDoesNotExist"
    NO_RECORDS_MATCH = "noRecordsMatch"
    NO_METADATA_FORMATS = "noMetadataFormats"
    NO_SET_HIERARCHY = "noSetHierarchy"


class OaiError(Exception):
    """Protocol errors: codes with messages. They become a normal response, so this is not a WebdepotError."""

    def __init__(self, *errors: tuple[Code, str]) -> None:
        super().__init__("; ".join(f"{code.value}: {message}" for code, message in errors))
        self.errors = errors


# Verb: required arguments, optional arguments, whether a resumption token may replace them all.
_ARGUMENTS: dict[OaiVerb, tuple[frozenset[str], frozenset[str], bool]] = {
    OaiVerb.IDENTIFY: (frozenset(), frozenset(), False),
    OaiVerb.LIST_METADATA_FORMATS: (frozenset(), frozenset({"identifier"}), False),
    OaiVerb.LIST_SETS: (frozenset(), frozenset(), True),
    OaiVerb.GET_RECORD: (frozenset({"identifier", "metadataPrefix"}), frozenset(), False),
    OaiVerb.LIST_IDENTIFIERS: (frozenset({"metadataPrefix"}), frozenset({"from", "until", "set"}), True),
    OaiVerb.LIST_RECORDS: (frozenset({"metadataPrefix"}), frozenset({"from", "until", "set"}), True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """A valid request."""

    verb: OaiVerb
    given: Sequence[tuple[str, str]]
    """As sent, for the `request` element."""
    identifier: str = ""
    prefix: str = ""
    set_spec: str = ""
    since: datetime | None = None
    until: datetime | None = None
    """The last second included."""
    token: str | None = None


def parse(pairs: Sequence[tuple[str, str]]) -> Arguments:
    """Check a request; OaiError with all its errors."""
    verbs = [value for name, value in pairs if name == "verb"]
    if len(verbs) != 1 or verbs[0] not in tuple(OaiVerb):
        message = (
            "The verb is missing."
            if not verbs
            else "The verb is given more than once."
            if len(verbs) > 1
            else "There is no such verb."
        )
        raise OaiError((Code.BAD_VERB, message))
    verb = OaiVerb(verbs[0])
    required, optional, is_list = _ARGUMENTS[verb]
    given = [pair for pair in pairs if pair[0] != "verb"]
    names = [name for name, _ in given]
    allowed = required | optional | ({"resumptionToken"} if is_list else set())
    errors = [
        (Code.BAD_ARGUMENT, f"{name[:60]} is not an argument of {verb.value}.")
        for name in dict.fromkeys(names)
        if name not in allowed
    ]
    errors += [
        (Code.BAD_ARGUMENT, f"{name[:60]} is given more than once.")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if "resumptionToken" in names and len(set(names)) > 1:
        errors.append((Code.BAD_ARGUMENT, "resumptionToken must be the only argument besides the verb."))
    elif "resumptionToken" not in names:
        errors += [(Code.BAD_ARGUMENT, f"{name} is missing.") for name in sorted(required - set(names))]
    if errors:
        raise OaiError(*errors)
    return _checked(verb, pairs, dict(given))


def _checked(verb: OaiVerb, pairs: Sequence[tuple[str, str]], given: dict[str, str]) -> Arguments:
    errors: list[tuple[Code, str]] = []
    since, until = given.get("from", ""), given.get("until", "")
    for name, text in (("from", since), ("until", until)):
        if name in given and _moment(text, end=False) is None:
            errors.append(
                (Code.BAD_ARGUMENT, f"{name} must be a date like 2026-01-31 or 2026-01-31T12:00:00Z.")
            )
    if not errors and since and until:
        if len(since) != len(until):
            errors.append((Code.BAD_ARGUMENT, "from and until have different granularity."))
        elif since > until:
            errors.append((Code.BAD_ARGUMENT, "from is later than until."))
    if "set" in given and not _SPEC.match(given["set"]):
        errors.append((Code.BAD_ARGUMENT, "set is not a valid setSpec."))
    if "metadataPrefix" in given and not _PREFIX.match(given["metadataPrefix"]):
        errors.append((Code.BAD_ARGUMENT, "metadataPrefix contains characters that are not allowed."))
    if errors:
        raise OaiError(*errors)
    return Arguments(
        verb=verb,
        given=tuple(pairs),
        identifier=given.get("identifier", ""),
        prefix=given.get("metadataPrefix", ""),
        set_spec=given.get("set", ""),
        since=_moment(since, end=False),
        until=_moment(until, end=True),
        token=given.get("resumptionToken"),
    )


def _moment(text: str, *, end: bool) -> datetime | None:
    """The moment that a date or time means: for a day its first second, or with `end` its last."""
    try:
        if _DAY.match(text):
            return from_iso(text) + (timedelta(hours=23, minutes=59, seconds=59) if end else timedelta())
        return from_iso(text) if _SECOND.match(text) else None
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPosition:
    """How far a list has been sent."""

    verb: OaiVerb
    prefix: str
    set_spec: str
    since: datetime | None
    until: datetime
    """From the request, or the time of the first response."""
    last_at: datetime
    last_key: str
    sent: int
    total: int
    expires: datetime


def to_token(position: ListPosition, secret: bytes) -> str:
    facts = [
        position.verb.value,
        position.prefix,
        position.set_spec,
        _micros(position.since),
        _micros(position.until),
        _micros(position.last_at),
        position.last_key,
        position.sent,
        position.total,
        _micros(position.expires),
    ]
    body = json.dumps(facts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_signed(body, secret) + body).decode().rstrip("=")


def from_token(token: str, verb: OaiVerb, secret: bytes, now: datetime) -> ListPosition:
    """The position in a token; OaiError if the token is not ours, belongs to another verb, or has expired."""
    try:
        data = base64.urlsafe_b64decode(token[:LONGEST_TOKEN].encode("ascii") + b"=" * (-len(token) % 4))
        signature, body = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        if len(token) > LONGEST_TOKEN or not hmac.compare_digest(signature, _signed(body, secret)):
            raise ValueError("the signature is wrong")
        facts = json.loads(body)
    except (ValueError, binascii.Error, UnicodeError) as error:
        raise OaiError((Code.BAD_RESUMPTION_TOKEN, "The token cannot be read.")) from error
    position = ListPosition(
        verb=OaiVerb(facts[0]),
        prefix=facts[1],
        set_spec=facts[2],
        since=_at(facts[3]),
        until=_at(facts[4]) or now,
        last_at=_at(facts[5]) or now,
        last_key=facts[6],
        sent=facts[7],
        total=facts[8],
        expires=_at(facts[9]) or now,
    )
    if position.verb is not verb:
        raise OaiError((Code.BAD_RESUMPTION_TOKEN, f"The token belongs to {position.verb.value}."))
    if position.expires < now:
        raise OaiError((Code.BAD_RESUMPTION_TOKEN, "The token has expired."))
    return position


def _signed(body: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, body, hashlib.sha256)[:_SIGNATURE_BYTES]


def _micros(moment: datetime | None) -> int | None:
    """Whole microseconds since 1970, so that nothing is rounded."""
    return (
        None if moment is None else (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    )


def _at(micros: int | None) -> datetime | None:
    return None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
