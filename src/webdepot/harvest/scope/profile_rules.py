"""The rules of a profile: from a table in its TOML to a callable of the scope chain.

A rule accepts or rejects the addresses for which its condition holds, and passes on all others:

    [[profiles.museum.rules]]
    reject = "extension"            # the answer, and the condition
    of = ["avi", "iso"]             # the values to compare with; `over = 200` if the condition takes a number
    unless = true                   # optional: applies when the condition does not hold

`conditions.CONDITIONS` documents every condition.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from webdepot.errors import ConfigError
from webdepot.harvest.scope.conditions import CONDITIONS, Condition, ScopeFacts, media_ranges
from webdepot.harvest.scope.verdicts import PASS, Rule
from webdepot.model import Answer, Candidate, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpec:
    """A rule as written in a profile."""

    answer: Answer
    condition: str
    of: tuple[str, ...] = ()
    over: float = 0.0
    unless: bool = False

    def __str__(self) -> str:
        compared = ""
        if self.of:
            compared = f" {', '.join(self.of)}"
        elif CONDITIONS[self.condition].takes == "over":
            compared = f" over {self.over:g}"
        return f"{self.answer} {'unless ' if self.unless else ''}{self.condition}{compared}"


def from_table(table: Mapping[str, object], where: str) -> RuleSpec:
    """Read one rule of a profile. ConfigError starts with `where` and says what is wrong."""
    unknown = set(table) - {"accept", "reject", "of", "over", "unless"}
    if unknown:
        raise ConfigError(
            f"{where}: a rule has no key `{sorted(unknown)[0]}`. It has accept or reject, of, over, unless."
        )
    answers = [answer for answer in (Answer.ACCEPT, Answer.REJECT) if answer in table]
    if len(answers) != 1:
        raise ConfigError(f'{where}: a rule needs either accept = "…" or reject = "…".')
    name = table[answers[0]]
    condition = CONDITIONS.get(name) if isinstance(name, str) else None
    if not isinstance(name, str) or condition is None:
        raise ConfigError(f"{where}: {name!r} is not a condition. Use one of: {', '.join(CONDITIONS)}.")
    of, over, unless = table.get("of", []), table.get("over", 0), table.get("unless", False)
    values = [of] if isinstance(of, str) else of
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise ConfigError(f"{where}: `of` must be a string or a list of strings.")
    if isinstance(over, bool) or not isinstance(over, (int, float)) or over < 0:
        raise ConfigError(f"{where}: `over` must be a number of 0 or more.")
    if not isinstance(unless, bool):
        raise ConfigError(f"{where}: `unless` must be true or false.")
    if (condition.takes == "of") != bool(values) or ("over" in table) != (condition.takes == "over"):
        needed = {
            "of": "needs `of = [...]`",
            "over": "needs `over = NUMBER`",
            "": "takes neither `of` nor `over`",
        }[condition.takes]
        raise ConfigError(f"{where}: the condition {name} {needed}.")
    spec = RuleSpec(answer=answers[0], condition=name, of=tuple(values), over=float(over), unless=unless)
    try:
        condition_of(spec, ScopeFacts())
    except ValueError as error:
        raise ConfigError(f"{where}: {error}.") from error
    return spec


def to_table(spec: RuleSpec) -> dict[str, object]:
    """The table that `from_table` reads, for JSON and TOML."""
    table: dict[str, object] = {spec.answer.value: spec.condition}
    if spec.of:
        table["of"] = list(spec.of)
    if CONDITIONS[spec.condition].takes == "over":
        table["over"] = spec.over
    return table | ({"unless": True} if spec.unless else {})


def condition_of(spec: RuleSpec, facts: ScopeFacts) -> Condition | None:
    """The condition as a callable; None if it needs the response. ValueError for a wrong value in `of`."""
    make = CONDITIONS[spec.condition].make
    if make is None:
        media_ranges(spec.of)
        return None
    return make(spec.of, spec.over, facts)


def rule_of(spec: RuleSpec, facts: ScopeFacts) -> Rule | None:
    """The rule as a callable of the scope chain; None for one about responses (`answer_rule_of`)."""
    condition = condition_of(spec, facts)
    if condition is None:
        return None
    name = f"{'not ' if spec.unless else ''}{spec.condition}"

    def rule(candidate: Candidate) -> Verdict:
        reason = condition(candidate)
        if bool(reason) is spec.unless:
            return PASS
        return Verdict(
            answer=spec.answer,
            rule=name,
            reason=reason or f"not {spec.condition} {', '.join(spec.of)}".rstrip(),
        )

    return rule


def answer_rule_of(spec: RuleSpec) -> Callable[[str], Verdict] | None:
    """The rule as a callable of a media type; None for one about addresses."""
    if spec.condition != "mime":
        return None
    ranges = media_ranges(spec.of)

    def rule(mime: str) -> Verdict:
        matched = next((text for text, pattern in ranges if pattern.fullmatch(mime)), "")
        if bool(matched) is spec.unless:
            return PASS
        return Verdict(
            answer=spec.answer,
            rule="mime",
            reason=f"{mime} matches {matched}" if matched else f"{mime} matches none of {', '.join(spec.of)}",
        )

    return rule


def of_answers(specs: Sequence[RuleSpec], facts: ScopeFacts) -> list[Callable[[Candidate, str], Verdict]]:
    """All rules in order, as callables of an address and its media type; none if no rule is about types."""
    if not any(spec.condition == "mime" for spec in specs):
        return []
    return [_of_answer(spec, facts) for spec in specs]


def _of_answer(spec: RuleSpec, facts: ScopeFacts) -> Callable[[Candidate, str], Verdict]:
    about_type, about_address = answer_rule_of(spec), rule_of(spec, facts)

    def rule(candidate: Candidate, mime: str) -> Verdict:
        if about_type is not None:
            return about_type(mime)
        verdict = about_address(candidate) if about_address is not None else PASS
        return verdict if verdict else PASS  # rejections by address were applied before it was fetched

    return rule
