"""What a robots.txt shuts out, as rules of access: for archives that follow it in what they show, too.

A robots.txt closes nothing by itself, since the new owner of a domain would close the old one's pages; a
person says for which site it shall be heeded. The newest one in the archive counts (RFC 9309): the group for
us, or else the one for everybody. `Disallow` becomes a rule that refuses, `Allow` one that shows; of both the
longest path wins, as in the file. Said again, the rules of last time are replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.access import rules
from webdepot.access.policy import Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.container.reader import read_record
from webdepot.errors import InputError, NotFound
from webdepot.harvest.politeness import robots
from webdepot.model import RecordKind
from webdepot.services.access import replay
from webdepot.services.access import rules as rules_service
from webdepot.url import UrlMatch, from_typed, host_of, key_range
from webdepot.url import key as key_of

REASON = "robots"
AGENT = "webdepot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heeded:
    """What came of a robots.txt."""

    captured: str
    """When the file was captured."""
    patterns: Sequence[tuple[RuleAnswer, str]]
    left_out: Sequence[str]
    """Lines with a star in the middle: no rule can say that."""
    made: Sequence[Rule]


def heed(archive: Archive, site: str, *, text: str = "", dry_run: bool = False) -> Heeded:
    """Make the rules of a site's archived robots.txt; NotFound when the archive has none. With `dry_run` only
    say which.
    """
    host = host_of(from_typed(site))
    captured, lines = _lines(archive, host)
    patterns = [(answer, pattern) for answer, value in lines if (pattern := _pattern(host, value))]
    made: list[Rule] = []
    if not dry_run:
        start, stop = key_range(host, UrlMatch.HOST)
        with archive.database.transaction() as connection:
            for rule in rules.every(connection):
                if rule.reason == REASON and start <= rule.prefix < stop:
                    rules_service.remove(archive, rule.id, connection=connection)
            for answer, pattern in patterns:
                words = text if answer is RuleAnswer.REFUSE else ""
                made += rules_service.add(
                    archive, pattern, answer=answer, public_text=words, reason=REASON, connection=connection
                )
    left_out = [value for _, value in lines if not _pattern(host, value)]
    return Heeded(captured=captured, patterns=patterns, left_out=left_out, made=made)


def _lines(archive: Archive, host: str) -> tuple[str, list[tuple[RuleAnswer, str]]]:
    """Past the rules of access: those of last time may have closed the file itself."""
    url = f"http://{host}/robots.txt"
    capture = archive.captures.last(key_of(url))
    source = (
        replay.find_original(archive, capture) if capture and capture.kind is RecordKind.REVISIT else capture
    )
    if capture is None or source is None:
        raise NotFound(f"{url} is not kept in this archive. Make rules by hand: webdepot rule add")
    if source.status != 200:
        raise InputError(
            f"The newest capture of {url} is no file but an answer {source.status}. Make rules by hand: webdepot rule add"
        )
    with archive.open_container(source.location.container) as stream:
        body = read_record(stream, source.location).content(robots.LONGEST_BYTES).read()
    known = robots.of_answer(status=200, body=body, at=archive.clock(), agent=AGENT)
    answers = {"allow": RuleAnswer.SHOW, "disallow": RuleAnswer.REFUSE}
    return capture.timestamp, [(answers[kind], value) for kind, value in known.lines if kind in answers]


def _pattern(host: str, value: str) -> str:
    """What a line covers, as a rule says it; empty where none can."""
    is_page = value.endswith("$")
    path = value.removesuffix("$") if is_page else value.rstrip("*")
    if "*" in path or not path.startswith("/"):
        return host if value.strip("*") == "" else ""
    if path == "/" and not is_page:
        return host
    return f"{host}{path}" if is_page else f"{host}{path}*"
