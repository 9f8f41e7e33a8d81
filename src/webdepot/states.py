"""State tables: which changes of state are possible, and the message if one is not.

A machine is a list of rows `act: before -> after`. A step without a row is refused with a message that names
the current state, the required state, and the steps possible now. The reference page of states is generated
from the same rows (`scripts/reference.py`), so documentation and code cannot differ.
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
    """States in which it is possible; empty for the act that creates the thing."""
    after: State
    meaning: str
    """What happens, in one sentence, for the reference page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Generic[State]):
    """All steps of one kind of thing."""

    noun: str
    steps: tuple[Step[State], ...]
    meanings: Mapping[State, str] = field(default_factory=dict)
    """The meaning of each state, for the reference page."""

    def after(self, state: State | None, act: str, subject: str) -> State:
        """The state after an act (`state` None: the thing does not exist yet); Conflict if it is not
        possible.
        """
        rows = [step for step in self.steps if step.act == act]
        for step in rows:
            if state in step.before or (state is None and not step.before):
                return step.after
        if not rows:
            known = ", ".join(sorted({step.act for step in self.steps}))
            raise Conflict(f"There is no step {act!r} for a {self.noun}. Known: {known}.")
        required = list(dict.fromkeys(before for step in rows for before in step.before))
        current = f"in the state {state.value!r}" if state is not None else "because it does not exist yet"
        needed = (
            f"Required state: {_or([before.value for before in required])}."
            if required
            else "It is possible only for a new one."
        )
        possible = f" Possible now: {', '.join(acts)}." if (acts := list(self.acts(state))) else ""
        message = f"{subject}: the step {act!r} is not possible {current}. {needed}{possible}"
        if state is None or not required:
            raise Conflict(message)
        values = {
            "subject": subject,
            "act": self._act(act),
            "state": state,
            "needed": required,
            "acts": [self._act(each) for each in acts],
        }
        raise Conflict(Reason(message, "step_not_possible" if acts else "step_never_possible", values))

    def _act(self, act: str) -> Choice:
        """An act as a value of a reason, so that pages can translate it."""
        return Choice(act, f"act of a {self.noun}", act.replace(" ", "_"))

    def check(self, before: State, after: State, subject: str) -> Step[State]:
        """The row that leads from one state to another; Conflict if there is none."""
        for step in self.steps:
            if before in step.before and step.after is after:
                return step
        possible = (
            f" Possible now: {', '.join(acts)}."
            if (acts := list(self.acts(before)))
            else " No further step is possible."
        )
        raise Conflict(f"{subject}: it is {before.value} and cannot become {after.value}.{possible}")

    def allows(self, state: State | None, act: str) -> bool:
        """Whether an act is possible in a state."""
        return any(
            step.act == act and (state in step.before or (state is None and not step.before))
            for step in self.steps
        )

    def acts(self, state: State | None) -> Iterator[str]:
        """The acts that are possible in a state, in the order of the rows."""
        return iter(
            dict.fromkeys(
                step.act for step in self.steps if state in step.before or (state is None and not step.before)
            )
        )


def drawn(machine: Machine[State]) -> Iterator[str]:
    """The machine as Markdown: a diagram (Mermaid) and a table of its rows."""
    yield from ("```mermaid", "stateDiagram-v2")
    for step in machine.steps:
        for before in [_id(state.value) for state in step.before] or ["[*]"]:
            yield f"    {before} --> {_id(step.after.value)}: {step.act}"
    yield from ("```", "")
    if machine.meanings:
        yield from ("| state | meaning |", "|---|---|")
        yield from (f"| {state.value} | {meaning} |" for state, meaning in machine.meanings.items())
        yield ""
    yield from ("| step | from | to | what happens |", "|---|---|---|---|")
    for step in machine.steps:
        before_states = ", ".join(state.value for state in step.before) or "(new)"
        yield f"| {step.act} | {before_states} | {step.after.value} | {step.meaning} |"
    yield ""


def _or(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _id(state: str) -> str:
    return state.replace(" ", "_")
