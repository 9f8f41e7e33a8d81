"""robots.txt: may we ask for this? RFC 9309, https://www.rfc-editor.org/rfc/rfc9309

Protego reads the rules; the rest of the standard is here. Order of steps:

1. `of_answer` turns a final answer into `RobotsRules`: 2xx is read (500 KiB of it, a byte-order mark is no
   letter); 4xx means there are no rules; 5xx, 429 and no answer at all mean that nothing may be fetched;
   redirects beyond the fifth mean no rules.
2. `RobotsRules.decide` gives a verdict for one address, and names the line.
3. `judge` says what the policy of the harvest makes of it: obey, obey but for parts of pages, or ignore,
   which the log then shows.

What pages say themselves (meta robots, X-Robots-Tag) is read by `page_directives` and `tag_directives`.

The text is kept as it came, so a stored `RobotsRules` is read again by the rules of whatever version reads it.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from protego import Protego

from webdepot.model import Answer, Failure, Verdict

LONGEST_BYTES = 500 << 10
MOST_REDIRECTS = 5
KEPT_FOR = timedelta(hours=24)
"""RFC 9309, 2.4: a copy should not be used for longer."""

_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z_-]+)")
_TOKEN = re.compile(r"[A-Za-z_-]+")
_LINE = re.compile(r"\s*(user-agent|allow|disallow)\s*:\s*([^#\r\n]*)", re.IGNORECASE)


# Protego also reads misspellings (`dissallow`) and lines without a colon.
_FORBIDDING = re.compile(r"\s*di[a-z]*[\s:]+([^#\r\n]*)", re.IGNORECASE)
_NOT_PLAIN = re.compile(r"[*$%]|[^!-~]")
_ALLOWED = Verdict(answer=Answer.ACCEPT, rule="robots", reason="allowed by robots.txt")


class RobotsPolicy(StrEnum):
    OBEY = "obey"
    OBEY_BUT_EMBEDS = "obey-but-embeds"
    """Parts of pages are fetched even where robots.txt forbids it: without its styles a page cannot be shown
    as it was.
    """
    IGNORE = "ignore"


class RobotsBasis(StrEnum):
    """What a decision about a whole host rests on."""

    RULES = "rules"
    NO_RULES = "no rules"
    UNREACHABLE = "unreachable"


_RULES = RobotsBasis.RULES


def product_token(user_agent: str) -> str:
    """The name by which robots.txt calls us: `Webdepot` of `Webdepot/1.0 (+https://…)`."""
    found = _COMPATIBLE.search(user_agent)
    if found:
        return found[1]
    token = _TOKEN.match(user_agent)
    return token[0] if token else "webdepot"


def of_answer(*, status: int, body: bytes, at: datetime, agent: str) -> "RobotsRules":
    """What the final answer to a request for robots.txt means."""
    if 200 <= status < 300:
        return RobotsRules(
            basis=RobotsBasis.RULES,
            detail="",
            text=body[:LONGEST_BYTES].decode("utf-8-sig", "replace"),
            at=at,
            agent=agent,
        )
    if 300 <= status < 500 and status != 429:
        return RobotsRules(
            basis=RobotsBasis.NO_RULES, detail=f"robots.txt answers {status}", text="", at=at, agent=agent
        )
    return RobotsRules(
        basis=RobotsBasis.UNREACHABLE, detail=f"robots.txt answers {status}", text="", at=at, agent=agent
    )


def of_failure(
    failure: Failure, detail: str, *, at: datetime, agent: str, permanent: bool = False
) -> "RobotsRules":
    """No answer at all: as with 5xx nothing may be fetched, but the host is to blame, not its rules."""
    return RobotsRules(
        basis=RobotsBasis.UNREACHABLE,
        detail=f"robots.txt could not be fetched: {detail}",
        text="",
        at=at,
        agent=agent,
        failure=failure,
        permanent=permanent,
    )


def judge(known: "RobotsRules", url: str, policy: RobotsPolicy, *, is_part: bool) -> Verdict:
    """What a policy makes of a host's rules. Where they are not obeyed, the verdict names the line that was
    passed over.
    """
    verdict = known.decide(url)
    if verdict or policy is RobotsPolicy.OBEY:
        return verdict
    if policy is RobotsPolicy.IGNORE:
        return Verdict(answer=Answer.ACCEPT, rule="robots ignored", reason=verdict.reason)
    if is_part and known.basis is RobotsBasis.RULES:
        return Verdict(answer=Answer.ACCEPT, rule="robots but embeds", reason=verdict.reason)
    return verdict


def page_directives(content: str) -> frozenset[str]:
    """The words of a meta robots element, `none` written out."""
    words = frozenset(word.strip().lower() for word in content[:1000].split(","))
    return words | {"noindex", "nofollow"} if "none" in words else words


def tag_directives(values: Iterable[str], agent: str) -> frozenset[str]:
    """The words of all X-Robots-Tag headers that are for everybody or for us: `otherbot: noindex, webdepot:
    nofollow`.
    """
    found: set[str] = set()
    for value in values:
        name = "*"
        for part in value[:1000].split(","):
            before, colon, after = part.partition(":")
            # `unavailable_after: 25 Jun 2030` and the like are words with a value, not names.
            if colon and before.strip().lower() not in _WITH_VALUE:
                name, part = before.strip().lower(), after
            if name in ("*", agent.lower()):
                found |= page_directives(part)
    return frozenset(found)


_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


def from_json(data: bytes) -> "RobotsRules":
    """Read what `RobotsRules.to_json` wrote."""
    values = json.loads(data)
    return RobotsRules(
        basis=RobotsBasis(values["basis"]),
        detail=values["detail"],
        text=values["text"],
        at=datetime.fromisoformat(values["at"]),
        agent=values["agent"],
    )


@dataclass(frozen=True, kw_only=True)  # no slots: it keeps what it has parsed
class RobotsRules:
    """The rules of one host, for one agent."""

    basis: RobotsBasis
    detail: str
    text: str = field(repr=False)
    at: datetime
    agent: str
    failure: Failure | None = None
    """Why there was no answer, where there was none."""
    permanent: bool = False
    """There never will be one: no such host."""

    def decide(self, url: str) -> Verdict:
        if self.basis is not _RULES:
            answer = Answer.ACCEPT if self.basis is RobotsBasis.NO_RULES else Answer.REJECT
            return Verdict(answer=answer, rule="robots", reason=self.detail)
        if self._is_nowhere_near(url) or self._rules.can_fetch(url, self.agent):
            return _ALLOWED
        line = self._line_for(url)
        return Verdict(
            answer=Answer.REJECT,
            rule="robots",
            reason=f"robots.txt: {line}" if line else "disallowed by robots.txt",
        )

    def _is_nowhere_near(self, url: str) -> bool:
        """Whether no Disallow line of any group can speak of an address: Protego takes 60 µs to say so, and
        it is so for most pages.
        """
        start = url.find("/", url.find("//") + 2)
        return start > 0 and "%" not in url and not url.startswith(self._disallowed_starts, start)

    @cached_property
    def _disallowed_starts(self) -> tuple[str, ...]:
        """What the path of a disallowed address begins with, as far as it is plain text."""
        values = [found[1].strip() for found in map(_FORBIDDING.match, self.text.splitlines()) if found]
        return tuple(
            {_NOT_PLAIN.split(value, maxsplit=1)[0] if value[0] == "/" else "" for value in values if value}
        )

    @cached_property
    def crawl_delay_s(self) -> float | None:
        try:
            delay = self._rules.crawl_delay(self.agent) if self.text else None
        except ValueError:
            return None
        return float(delay) if delay is not None and 0 <= delay < float("inf") else None

    @property
    def sitemaps(self) -> list[str]:
        return list(self._rules.sitemaps) if self.text else []

    def shuts_out(self, origin: str) -> bool:
        """Whether nothing at all may be fetched, for everybody or for us: no page, and no exception is made."""
        if self.basis is not RobotsBasis.RULES or any(kind == "allow" for kind, _ in self.lines):
            return False
        return not self._rules.can_fetch(f"{origin}/", self.agent) and not self._rules.can_fetch(
            f"{origin}/any/page?at=all", self.agent
        )

    def is_fresh(self, now: datetime) -> bool:
        return now - self.at < KEPT_FOR

    def to_json(self) -> bytes:
        values = {
            "basis": self.basis.value,
            "detail": self.detail,
            "text": self.text,
            "at": self.at.astimezone(UTC).isoformat(),
        }
        return json.dumps(values | {"agent": self.agent}).encode()

    @cached_property
    def _rules(self) -> Protego:
        return Protego.parse(self.text)

    @cached_property
    def lines(self) -> list[tuple[str, str]]:
        """Allow and Disallow lines of our group, or, without one, of the group for everybody."""
        named: list[tuple[str, str]] = []
        general: list[tuple[str, str]] = []
        agents: list[str] = []
        in_rules = False
        is_named = False
        for kind, value in (
            (found[1].lower(), found[2].strip())
            for found in map(_LINE.match, self.text.splitlines())
            if found
        ):
            if kind == "user-agent":
                agents = [value.lower()] if in_rules else [*agents, value.lower()]
                in_rules = False
                is_named = is_named or self.agent.lower() == value.lower()
                continue
            in_rules = True
            if value and self.agent.lower() in agents:
                named.append((kind, value))
            if value and "*" in agents:
                general.append((kind, value))
        return named if is_named else general

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        return [(value, _pattern(value)) for kind, value in self.lines if kind == "disallow"]

    def _line_for(self, url: str) -> str:
        """The longest Disallow line that matches, for the log."""
        target = "/" + url.partition("://")[2].partition("/")[2]
        return max(
            (f"Disallow: {value}" for value, pattern in self._patterns if pattern.match(target)),
            key=len,
            default="",
        )


def _pattern(value: str) -> re.Pattern[str]:
    ends = value.endswith("$")
    pieces = re.sub(r"\*+", "*", value.removesuffix("$")).split("*")
    return re.compile(".*?".join(map(re.escape, pieces)) + (r"\Z" if ends else ""))
