"""State tables: which change of state is possible, as rows, and the reason when one is not.

A machine is a list of rows `act: before -> after`. What is in no row cannot happen: `after` refuses it with
words that say in which state the thing is, in which it would have to be, and what can be done with it
instead. The reference page of states is drawn from the same rows (`scripts/reference.py`), so documentation
and code cannot differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from webdepot.errors import Conflict
from webdepot.reasons import Choice, Reason

State = TypeVar("State", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[State]):
    """A row of a state table."""

    act: str
    """A verb: `select`, `put off`."""
    before: tuple[State, ...]
    """States from which it is possible; none for the act that begins the thing."""
    after: State
    words: str
    """What happens, in one sentence, for the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Generic[State]):
    """All steps of one kind of thing."""

    noun: str
    steps: tuple[Step[State], ...]
    meanings: Mapping[State, str] = field(default_factory=dict)
    """What each state means, for the reference."""

    def after(self, state: State | None, act: str, subject: str) -> State:
        """The state after an act (`state` None: before the thing exists); Conflict with the reason when the
        act is impossible.
        """
        rows = [step for step in self.steps if step.act == act]
        for step in rows:
            if state in step.before or (state is None and not step.before):
                return step.after
        if not rows:
            raise Conflict(
                f"There is no act {act!r} for a {self.noun}. Known: {', '.join(sorted({step.act for step in self.steps}))}."
            )
        fitting = list(dict.fromkeys(before for step in rows for before in step.before))
        where = f"in the state {state.value!r}" if state is not None else "because it does not exist yet"
        needed = (
            f"Required state: {_or([before.value for before in fitting])}."
            if fitting
            else "It is possible only for a new one."
        )
        instead = f" Possible now: {', '.join(acts)}." if (acts := list(self.acts(state))) else ""
        words = f"{subject}: the step {act!r} is not possible {where}. {needed}{instead}"
        if state is None or not fitting:
            raise Conflict(words)
        told = {
            "subject": subject,
            "act": self._named(act),
            "state": state,
            "needed": fitting,
            "acts": [self._named(each) for each in acts],
        }
        raise Conflict(Reason(words, "step_not_possible" if acts else "step_never_possible", told))

    def _named(self, act: str) -> Choice:
        """An act that pages have their own words for."""
        return Choice(act, f"act of a {self.noun}", act.replace(" ", "_"))

    def check(self, before: State, after: State, subject: str) -> Step[State]:
        """The row by which a thing comes from one state into another; Conflict with the reason when there is
        none.
        """
        for step in self.steps:
            if before in step.before and step.after is after:
                return step
        instead = (
            f" Possible now: {', '.join(acts)}."
            if (acts := list(self.acts(before)))
            else " Nothing can be done with it any more."
        )
        raise Conflict(f"{subject}: it is {before.value} and cannot become {after.value}.{instead}")

    def allows(self, state: State | None, act: str) -> bool:
        return any(
            step.act == act and (state in step.before or (state is None and not step.before))
            for step in self.steps
        )

    def acts(self, state: State | None) -> Iterator[str]:
        """What can be done with a thing in this state, in the order of the rows."""
        return iter(
            dict.fromkeys(
                step.act for step in self.steps if state in step.before or (state is None and not step.before)
            )
        )


def drawn(machine: Machine[State]) -> Iterator[str]:
    """The machine as Markdown: a picture (Mermaid) and its rows."""
    yield from ("```mermaid", "stateDiagram-v2")
    for step in machine.steps:
        for before in [_id(state.value) for state in step.before] or ["[*]"]:
            yield f"    {before} --> {_id(step.after.value)}: {step.act}"
    yield from ("```", "")
    if machine.meanings:
        yield from ("| state | meaning |", "|---|---|")
        yield from (f"| {state.value} | {words} |" for state, words in machine.meanings.items())
        yield ""
    yield from ("| step | from | to | what happens |", "|---|---|---|---|")
    for step in machine.steps:
        yield f"| {step.act} | {', '.join(state.value for state in step.before) or '(new)'} | {step.after.value} | {step.words} |"
    yield ""


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _id(state: str) -> str:
    return state.replace(" ", "_")
