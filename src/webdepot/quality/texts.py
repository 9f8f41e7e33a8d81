"""The table of all findings about a harvest: severity, English message and the suggested action of each.

The portal has the messages in other languages under the same codes (`quality.words`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from webdepot.model import Finding, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


class Action(StrEnum):
    """What a person can do about a finding; the portal shows it as a button."""

    PATCH = "patch"
    WIDEN_SCOPE = "widen scope"
    RAISE_LIMIT = "raise limit"
    RESUME = "resume"
    CHECK_SEED = "check seed"
    EXCLUDE = "exclude"
    IGNORE = "ignore"
    IGNORED = "ignored"
    """A person decided to ignore the finding for this target."""
    NONE = ""


@dataclass(frozen=True, slots=True)
class Text:
    severity: Severity
    words: str
    action: Action


TEXTS: Mapping[str, Text] = {
    "nothing-harvested": Text(
        _ERROR, "Nothing was harvested: no address returned a document.", Action.CHECK_SEED
    ),
    "seed-failed": Text(_ERROR, "The seed did not return a document: {detail}.", Action.CHECK_SEED),
    "seed-never-tried": Text(_ERROR, "The seed was never requested.", Action.RESUME),
    "queue-left": Text(
        _WARNING, "The harvest ended with {count} addresses still in the queue.", Action.RESUME
    ),
    "part-never-tried": Text(_WARNING, "Part of {pages}, but it was never requested.", Action.PATCH),
    "part-robots": Text(_WARNING, "Part of {pages}, but robots.txt blocks it.", Action.IGNORE),
    "part-out-of-scope": Text(
        _WARNING, "Part of {pages}, but it is out of scope: {detail}.", Action.WIDEN_SCOPE
    ),
    "part-over-limit": Text(
        _WARNING, "Part of {pages}, but a limit was reached first: {detail}.", Action.RAISE_LIMIT
    ),
    "part-error": Text(_WARNING, "Part of {pages}, but the server returned {detail}.", Action.PATCH),
    "part-unreachable": Text(
        _WARNING, "Part of {pages}, but it could not be fetched: {detail}.", Action.PATCH
    ),
    "link-broken": Text(_NOTE, "Linked from {pages}, but the server returned {detail}.", Action.IGNORE),
    "link-server-error": Text(
        _WARNING, "Linked from {pages}, but the server returned {detail}.", Action.PATCH
    ),
    "link-unreachable": Text(
        _WARNING, "Linked from {pages}, but it could not be fetched: {detail}.", Action.PATCH
    ),
    "link-robots": Text(_NOTE, "Linked from {pages}, but robots.txt blocks it.", Action.IGNORE),
    "body-truncated": Text(_WARNING, "The response was cut off ({detail}) and is incomplete.", Action.PATCH),
    "digest-differs": Text(
        _ERROR, "The content does not match the checksum in its record: {detail}.", Action.PATCH
    ),
    "redirect-loop": Text(_WARNING, "Its redirects form a loop: {detail}.", Action.EXCLUDE),
    "soft-missing": Text(
        _WARNING,
        "The server returned 200, but the page says that it does not exist: “{detail}”.",
        Action.EXCLUDE,
    ),
    "page-login": Text(
        _WARNING, "A sign-in form was returned instead of the page: “{detail}”.", Action.IGNORE
    ),
    "page-riddle": Text(_WARNING, "A CAPTCHA was returned instead of the page: “{detail}”.", Action.PATCH),
    "browser-failed": Text(
        _WARNING,
        "The browser did not load the page completely ({detail}); it is kept as the server sent it.",
        Action.PATCH,
    ),
    "browser-stopped": Text(_NOTE, "The browser read the page, but stopped early: {detail}.", Action.NONE),
    "since-before": Text(
        _NOTE, "Since {before}: {new} new, {gone} gone, {changed} changed, {same} unchanged.", Action.NONE
    ),
    "file-new": Text(_NOTE, "It was not in the last harvest.", Action.NONE),
    "file-gone": Text(_NOTE, "It was in the last harvest, but is missing now.", Action.IGNORE),
    "file-changed": Text(_NOTE, "Its content has changed since the last harvest.", Action.NONE),
    "count-differs": Text(
        _WARNING, "{now} documents were harvested, usually {usual}: {detail}.", Action.CHECK_SEED
    ),
    "size-differs": Text(
        _WARNING, "{now} bytes were harvested, usually {usual}: {detail}.", Action.CHECK_SEED
    ),
    "duration-differs": Text(
        _NOTE, "The harvest took {now} seconds, usually {usual}: {detail}.", Action.RAISE_LIMIT
    ),
    "types-differ": Text(
        _WARNING, "The document types differ from the usual ones: {detail}.", Action.CHECK_SEED
    ),
    "sub-domain": Text(
        _NOTE, "Pages link to this host of the same domain, which was not harvested.", Action.WIDEN_SCOPE
    ),
    "path-repeats": Text(
        _NOTE, "Its address repeats itself ({detail}) and may be a crawler trap.", Action.EXCLUDE
    ),
    "path-long": Text(
        _NOTE, "Its address is very long ({detail}) and may be a crawler trap.", Action.EXCLUDE
    ),
    "says-missing": Text(
        _NOTE,
        "It says the same as the page that its host shows for missing addresses; its links were not "
        "followed.",
        Action.EXCLUDE,
    ),
    "trap-stopped": Text(
        _NOTE,
        "Not harvested because it is probably a crawler trap: {detail}. Number of such addresses: {count}.",
        Action.IGNORE,
    ),
    "left-out": Text(
        _NOTE,
        "{count} addresses such as this one were left out, which the software of the site adds to "
        "its content: {detail}.",
        Action.IGNORE,
    ),
    "maze-stopped": Text(
        _NOTE,
        "{count} addresses such as this one were left out, because the site invents pages without end: "
        "{detail}.",
        Action.IGNORE,
    ),
    "log-damaged": Text(
        _WARNING, "{count} lines of the crawl log cannot be read and were skipped.", Action.NONE
    ),
}


def finding(code: str, *, subject: str, place: str = "", **facts: object) -> Finding:
    """The finding with this code; `facts` fill the placeholders of its English message."""
    text = TEXTS[code]
    message = text.words.format(
        **{name: f"{fact:,}" if type(fact) is int else fact for name, fact in facts.items()}
    )
    return Finding(
        code=f"quality.{code}",
        severity=text.severity,
        subject=subject,
        message=message,
        place=place,
        action=text.action.value,
        facts=facts,
    )


PATCHED = frozenset(
    f"quality.{code}"
    for code in (
        "part-never-tried",
        "part-error",
        "part-unreachable",
        "part-over-limit",
        "link-server-error",
        "link-unreachable",
        "body-truncated",
        "digest-differs",
        "page-riddle",
        "browser-failed",
    )
)
"""Codes of findings about addresses that a patch harvests again."""


def pages(count: int) -> str:
    return "one page" if count == 1 else f"{count:,} pages"
