"""Convert access rules of pywb (`.aclj`) to ours.

    org,example)/members - {"access": "block", "url": "http://example.org/members"}
    org,example)/page### - {"access": "exclude"}                 ### means this page alone
    org,example, - {"access": "allow", "user": "staff"}          all hosts below example.org

`block` refuses, `exclude` hides, `allow` and `allow_ignore_embargo` show. The longest key wins in both
programs. `before` and `after` become dates of capture, `newer` becomes an embargo in days. Where our rules
cannot express a line, it is reported and never guessed: a rule that closes must not be lost.

https://pywb.readthedocs.io/en/latest/manual/access-control.html
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.errors import InputError
from webdepot.times import period_of, to_timestamp

MOST_LINES = 100_000
LONGEST_BYTES = 64 << 20
_LONGEST_LINE = 1 << 16
_EXACT = "###"
_KEY = re.compile(r"[!-~]+\Z")
_ANSWERS = {
    "allow": RuleAnswer.SHOW,
    "allow_ignore_embargo": RuleAnswer.SHOW,
    "block": RuleAnswer.REFUSE,
    "exclude": RuleAnswer.HIDE,
}
_KNOWN = {"access", "url", "user", "before", "after", "newer", "older"}
_DAYS = {"years": 366, "months": 31, "weeks": 7, "days": 1}
"""The longest of each, so that an embargo never ends too early; for rules that open, the shortest."""
_SHORTEST_DAYS = {"years": 365, "months": 28, "weeks": 7, "days": 1}


@dataclass(slots=True, kw_only=True)
class RuleFile:
    """The access rules of a file, and the lines that our rules cannot express."""

    rules: list[Rule] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Line number and what is wrong with it, or cannot be expressed."""


def read(raw: bytes, users: Mapping[str, AccessPoint], *, now: datetime) -> RuleFile:
    """The rules of a file, with 0 as `id`; `users` gives the access point of each of pywb's users.

    InputError if the file is too large or has no rule at all.
    """
    if len(raw) > LONGEST_BYTES:
        raise InputError(f"The file is larger than {LONGEST_BYTES >> 20} MB. Split it into parts.")
    result = RuleFile()
    for number, line in _lines(raw):
        try:
            result.rules.append(_rule(line, users, now))
        except InputError as error:
            result.bad.append((number, str(error)))
    if not result.rules and not result.bad:
        raise InputError("The file has no access rule. Give an .aclj file of pywb.")
    return result


def _lines(raw: bytes) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if number > MOST_LINES:
            raise InputError(f"The file has more than {MOST_LINES:,} lines. Split it into parts.")
        if line.strip():
            yield number, line[: _LONGEST_LINE + 1].decode("utf-8", "replace").strip()


def _rule(line: str, users: Mapping[str, AccessPoint], now: datetime) -> Rule:
    if len(line) > _LONGEST_LINE:
        raise InputError("the line is too long for an access rule.")
    key, _, rest = line.partition(" ")
    values = _values(rest.partition(" ")[2])
    exact = key.endswith(_EXACT)
    key = key.removesuffix(_EXACT)
    if key == "*,":
        raise InputError("`*,` applies to everything. Add rules for the hosts that it is meant for.")
    if not _KEY.match(key) or not ("," in key or ")" in key):
        raise InputError(f"{key[:60]!r} is not a SURT key such as org,example)/path.")
    answer = _ANSWERS.get(str(values.get("access")))
    if answer is None:
        raise InputError(f"access {values.get('access')!r} is not one of {', '.join(_ANSWERS)}.")
    first, last = _captured(values)
    return Rule(
        id=0,
        prefix=key,
        exact=exact,
        answer=answer,
        captured_from=first,
        captured_to=last,
        embargo_days=_embargo_days(values, answer),
        access_point=_access_point(values, users),
        private_note=f"pywb: {str(values.get('url', ''))[:500]}" if values.get("url") else "pywb",
        created_at=now,
    )


def _values(text: str) -> dict[str, object]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError('it is not a line of an .aclj file, such as: org,example)/ - {"access": "block"}')
    unknown = sorted(set(values) - _KNOWN)
    if unknown:
        raise InputError(f"the field {unknown[0][:40]!r} is not supported: without it the rule would change.")
    if values.get("older"):
        raise InputError("`older` is not supported. Write the date instead, as `before`.")
    return values


def _access_point(values: Mapping[str, object], users: Mapping[str, AccessPoint]) -> AccessPoint | None:
    user = str(values.get("user") or "")
    if not user:
        return None
    if user not in users:
        raise InputError(
            f"the user {user[:40]!r} is not an access point of this archive. Map it to one: "
            f"--user {user[:40]}=staff (or {', '.join(AccessPoint)})."
        )
    return users[user]


def _captured(values: Mapping[str, object]) -> tuple[str, str]:
    """The first and last timestamp; pywb's limits themselves are not included."""
    first, last = "0" * 14, "9" * 14
    if after := values.get("after"):
        first = _moved(str(after), "after", lambda moment: moment + timedelta(seconds=1))
    if before := values.get("before"):
        last = _moved(str(before), "before", lambda moment: moment - timedelta(seconds=1))
    return first, last


def _moved(text: str, name: str, move: Callable[[datetime], datetime]) -> str:
    try:
        return to_timestamp(move(period_of(text).start.astimezone(UTC)))
    except (ValueError, OverflowError):
        raise InputError(f"{name} {text[:30]!r} is not a timestamp such as 20190304.") from None


def _embargo_days(values: Mapping[str, object], answer: RuleAnswer) -> int:
    newer = values.get("newer")
    if not newer:
        return 0
    lengths = _SHORTEST_DAYS if answer is RuleAnswer.SHOW else _DAYS
    if not isinstance(newer, dict) or not set(newer) <= set(lengths):
        raise InputError("`newer` must be an object with years, months, weeks or days.")
    if not all(type(count) is int and 0 <= count <= 10_000 for count in newer.values()):
        raise InputError("the values of `newer` must be whole numbers.")
    return sum(lengths[unit] * count for unit, count in newer.items())
