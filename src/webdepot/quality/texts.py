"""Every finding about a harvest, with its severity, its words and the one action it suggests: one table, to be translated as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from webdepot.model import Finding, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


class Action(StrEnum):
    """What a person can do about a finding; the portal makes a button of it."""

    PATCH = "patch"
    WIDEN_SCOPE = "widen scope"
    RAISE_LIMIT = "raise limit"
    RESUME = "resume"
    CHECK_SEED = "check seed"
    IGNORE = "ignore"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Text:
    severity: Severity
    words: str
    action: Action


TEXTS: Mapping[str, Text] = {
    "nothing-harvested": Text(_ERROR, "The harvest brought nothing: no address answered with a document.", Action.CHECK_SEED),
    "seed-failed": Text(_ERROR, "The seed did not answer with a document: {detail}.", Action.CHECK_SEED),
    "seed-never-tried": Text(_ERROR, "The seed was never asked for.", Action.RESUME),
    "queue-left": Text(_WARNING, "The harvest ended with {count} addresses still waiting.", Action.RESUME),
    "part-never-tried": Text(_WARNING, "Shown by {pages}, but it was never asked for.", Action.PATCH),
    "part-robots": Text(_WARNING, "Shown by {pages}, but robots.txt forbids it.", Action.IGNORE),
    "part-out-of-scope": Text(_WARNING, "Shown by {pages}, but it lies outside the scope: {detail}.", Action.WIDEN_SCOPE),
    "part-over-limit": Text(_WARNING, "Shown by {pages}, but a limit was reached before it: {detail}.", Action.RAISE_LIMIT),
    "part-error": Text(_WARNING, "Shown by {pages}, but the server answered {detail}.", Action.PATCH),
    "part-unreachable": Text(_WARNING, "Shown by {pages}, but it could not be fetched: {detail}.", Action.PATCH),
    "link-broken": Text(_NOTE, "Linked from {pages}, but the server answered {detail}.", Action.IGNORE),
    "link-server-error": Text(_WARNING, "Linked from {pages}, but the server answered {detail}.", Action.PATCH),
    "link-unreachable": Text(_WARNING, "Linked from {pages}, but it could not be fetched: {detail}.", Action.PATCH),
    "link-robots": Text(_NOTE, "Linked from {pages}, but robots.txt forbids it.", Action.IGNORE),
    "body-truncated": Text(_WARNING, "The answer was cut off ({detail}) and is not whole.", Action.PATCH),
    "log-damaged": Text(_WARNING, "{count} lines of the crawl log cannot be read and were passed over.", Action.NONE),
}


def finding(code: str, *, subject: str, place: str = "", **facts: object) -> Finding:
    """The finding of that code in English; `facts` fill the gaps of its words."""
    text = TEXTS[code]
    message = text.words.format(**facts)
    return Finding(code=f"quality.{code}", severity=text.severity, subject=subject, message=message, place=place, action=text.action.value)


def pages(count: int) -> str:
    return "one page" if count == 1 else f"{count} pages"
