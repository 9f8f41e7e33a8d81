"""Access rules from an archived robots.txt, for archives that apply it to access, too.

A robots.txt has no effect on access unless a person applies it to a site: otherwise the new owner of a domain
could close the old owner's pages. The newest one in the archive is used (RFC 9309): the group for us, or else
the one for everybody. `Disallow` becomes a rule that refuses, `Allow` one that shows; the longest path wins,
as in the file. Applying it again replaces the rules of the last time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.access import rule_rows
from webdepot.access.policy import Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.container.reader import read_record
from webdepot.errors import InputError, NotFound
from webdepot.harvest.politeness import robots
from webdepot.model import RecordKind
from webdepot.services.access import rules as rules_service
from webdepot.services.access.replay import replay
from webdepot.url import UrlMatch, from_typed, host_of, key_range
from webdepot.url import key as key_of

REASON = "robots"
AGENT = "webdepot"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedRobots:
    """The result of applying a robots.txt."""

    captured: str
    """When the file was captured."""
    patterns: Sequence[tuple[RuleAnswer, str]]
    left_out: Sequence[str]
    """Lines with a wildcard in the middle, which a rule cannot express."""
    made: Sequence[Rule]


def apply(archive: Archive, site: str, *, text: str = "", dry_run: bool = False) -> AppliedRobots:
    """Add the rules of a site's archived robots.txt; NotFound if the archive has none. With `dry_run`, only
    return the patterns.
    """
    host = host_of(from_typed(site))
    captured, lines = _lines(archive, host)
    patterns = [(answer, pattern) for answer, value in lines if (pattern := _pattern(host, value))]
    added: list[Rule] = []
    if not dry_run:
        start, stop = key_range(host, UrlMatch.HOST)
        with archive.database.transaction() as connection:
            for rule in rule_rows.every(connection):
                if rule.reason == REASON and start <= rule.prefix < stop:
                    rules_service.remove(archive, rule.id, connection=connection)
            for answer, pattern in patterns:
                added += rules_service.add(
                    archive,
                    pattern,
                    answer=answer,
                    public_text=text if answer is RuleAnswer.REFUSE else "",
                    reason=REASON,
                    connection=connection,
                )
    left_out = [value for _, value in lines if not _pattern(host, value)]
    return AppliedRobots(captured=captured, patterns=patterns, left_out=left_out, made=added)


def _lines(archive: Archive, host: str) -> tuple[str, list[tuple[RuleAnswer, str]]]:
    """When robots.txt was captured, and its lines. Read without the access gate: the rules of the last time
    may have closed the file itself.
    """
    url = f"http://{host}/robots.txt"
    capture = archive.captures.last(key_of(url))
    source = (
        replay.find_original(archive, capture) if capture and capture.kind is RecordKind.REVISIT else capture
    )
    if capture is None or source is None:
        raise NotFound(f"{url} is not archived here. Add rules by hand: webdepot rule add")
    if source.status != 200:
        raise InputError(
            f"The newest capture of {url} is not a file but a response with status {source.status}. "
            "Add rules by hand: webdepot rule add"
        )
    with archive.containers.open(source.location.container) as stream:
        body = read_record(stream, source.location).content(robots.LONGEST_BYTES).read()
    known = robots.of_answer(status=200, body=body, at=archive.clock(), agent=AGENT)
    answers = {"allow": RuleAnswer.SHOW, "disallow": RuleAnswer.REFUSE}
    return capture.timestamp, [(answers[kind], value) for kind, value in known.lines if kind in answers]


def _pattern(host: str, value: str) -> str:
    """The pattern of a rule for a line; empty if no rule can express it."""
    is_page = value.endswith("$")
    path = value.removesuffix("$") if is_page else value.rstrip("*")
    if "*" in path or not path.startswith("/"):
        return host if value.strip("*") == "" else ""
    if path == "/" and not is_page:
        return host
    return f"{host}{path}" if is_page else f"{host}{path}*"
