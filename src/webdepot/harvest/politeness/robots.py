"""robots.txt: whether an address may be fetched. RFC 9309, https://www.rfc-editor.org/rfc/rfc9309

Protego reads the rules; the rest of the standard is here. Order of steps:

1. `of_answer` turns the final response into `RobotsRules`: 2xx is parsed (500 KiB of it, without a byte-order
   mark); 4xx means there are no rules; 5xx, 429 and no response at all mean that nothing may be fetched; more
   than five redirects mean no rules.
2. `RobotsRules.decide` gives a verdict for one address, and names the line.
3. `judge` applies the policy of the harvest: obey, obey except for parts of pages, or ignore, which the log
   then shows.

Directives of single pages (meta robots, X-Robots-Tag) are read by `page_directives` and `tag_directives`.

The text is stored unchanged, so that a later version of this module can interpret it again.
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

_ALLOWED = Verdict(answer=Answer.ACCEPT, rule="robots", reason="allowed by robots.txt")


class RobotsPolicy(StrEnum):
    OBEY = "obey"
    OBEY_BUT_EMBEDS = "obey-but-embeds"
    """Parts of pages are fetched even if robots.txt forbids it: without its styles a page cannot be replayed
    as it was.
    """
    IGNORE = "ignore"


class RobotsBasis(StrEnum):
    """The basis of a decision about a whole host."""

    RULES = "rules"
    NO_RULES = "no rules"
    UNREACHABLE = "unreachable"


def product_token(user_agent: str) -> str:
    """Our name in robots.txt: `Webdepot` for `Webdepot/1.0 (+https://…)`."""
    compatible = _COMPATIBLE.search(user_agent)
    if compatible:
        return compatible[1]
    token = _TOKEN.match(user_agent)
    return token[0] if token else "webdepot"


def of_answer(*, status: int, body: bytes, at: datetime, agent: str) -> "RobotsRules":
    """The rules that follow from the final response to a request for robots.txt."""
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
    """The rules if there was no response: nothing may be fetched, as with 5xx, but the failure is kept."""
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
    """The verdict of a policy about an address. If rules are not obeyed, it names the ignored line."""
    verdict = known.decide(url)
    if verdict or policy is RobotsPolicy.OBEY:
        return verdict
    if policy is RobotsPolicy.IGNORE:
        return Verdict(answer=Answer.ACCEPT, rule="robots ignored", reason=verdict.reason)
    if is_part and known.basis is RobotsBasis.RULES:
        return Verdict(answer=Answer.ACCEPT, rule="robots but embeds", reason=verdict.reason)
    return verdict


def page_directives(content: str) -> frozenset[str]:
    """The directives of a meta robots element, with `none` written out."""
    directives = frozenset(word.strip().lower() for word in content[:1000].split(","))
    return directives | {"noindex", "nofollow"} if "none" in directives else directives


def tag_directives(values: Iterable[str], agent: str) -> frozenset[str]:
    """The directives for all crawlers or for us in X-Robots-Tag headers: `otherbot: noindex, webdepot:
    nofollow`.
    """
    directives: set[str] = set()
    for value in values:
        name = "*"
        for part in value[:1000].split(","):
            before, colon, after = part.partition(":")
            # `unavailable_after: 25 Jun 2030` and the like are directives with a value, not names of
            # crawlers.
            if colon and before.strip().lower() not in _WITH_VALUE:
                name, part = before.strip().lower(), after
            if name in ("*", agent.lower()):
                directives |= page_directives(part)
    return frozenset(directives)


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


@dataclass(frozen=True, kw_only=True)  # no slots, because of cached_property
class RobotsRules:
    """The rules of one host, for one agent."""

    basis: RobotsBasis
    detail: str
    text: str = field(repr=False)
    at: datetime
    agent: str
    failure: Failure | None = None
    """Why there was no response; None if there was one."""
    permanent: bool = False
    """The host does not exist."""

    def decide(self, url: str) -> Verdict:
        if self.basis is not RobotsBasis.RULES:
            answer = Answer.ACCEPT if self.basis is RobotsBasis.NO_RULES else Answer.REJECT
            return Verdict(answer=answer, rule="robots", reason=self.detail)
        if self._rules.can_fetch(url, self.agent):
            return _ALLOWED
        line = self._line_for(url)
        return Verdict(
            answer=Answer.REJECT,
            rule="robots",
            reason=f"robots.txt: {line}" if line else "disallowed by robots.txt",
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
        """Whether robots.txt forbids everything, for us or for all crawlers, without an Allow line."""
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
        """Allow and Disallow lines of our group, or, without one, of the group for all crawlers."""
        named: list[tuple[str, str]] = []
        general: list[tuple[str, str]] = []
        agents: list[str] = []
        in_rules = False
        is_named = False
        for kind, value in (
            (line[1].lower(), line[2].strip()) for line in map(_LINE.match, self.text.splitlines()) if line
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

    def _line_for(self, url: str) -> str:
        """The longest Disallow line that matches, for the log."""
        target = "/" + url.partition("://")[2].partition("/")[2]
        return max(
            (
                f"Disallow: {value}"
                for kind, value in self.lines
                if kind == "disallow" and _covers(value, target)
            ),
            key=len,
            default="",
        )


def _covers(rule: str, target: str) -> bool:
    """Whether a rule with wildcards matches the start of a path, in linear time: each part between two stars
    is looked for after the one before it, and the first place is always the best.
    """
    first, *parts = rule.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    if rule.endswith("$"):
        if not parts:
            return target == first
        last = parts.pop()
        if len(target) < len(first) + len(last) or not target.endswith(last):
            return False
        target = target[: len(target) - len(last)]
    at = len(first)
    for part in parts:
        at = target.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
