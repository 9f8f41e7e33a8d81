"""Many targets at a time: how many there are in each state, and the targets themselves in batches.

Batches are in the order of the targets' numbers, so that each target is processed once, although that may
change whether the filter matches it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from webdepot.selection import targets as selection_targets
from webdepot.selection.states import TargetState
from webdepot.selection.tables import targets
from webdepot.selection.target_list import TargetFilter, matching
from webdepot.selection.targets import Dossier

BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChoice:
    """Targets that a person chose: by their numbers, or all that a filter matches."""

    numbers: Sequence[int] = ()
    wanted: TargetFilter | None = None


def count_by_state(connection: Connection, choice: TargetChoice) -> Mapping[TargetState, int]:
    """How many of the chosen targets are in each state; states without any are left out."""
    rows = connection.execute(
        select(targets.c.state, func.count()).where(*_conditions(choice)).group_by(targets.c.state)
    )
    counts = {TargetState(state): count for state, count in rows}
    return {state: counts[state] for state in TargetState if state in counts}


def examples(
    connection: Connection, choice: TargetChoice, state: TargetState, limit: int
) -> Sequence[Dossier]:
    """A few of the chosen targets that are in a state."""
    chosen = select(targets.c.id).where(*_conditions(choice), targets.c.state == state.value).limit(limit)
    return selection_targets.dossiers_of(connection, list(connection.execute(chosen).scalars()))


def last_number(connection: Connection) -> int:
    """The highest number that a target has now: those that are added later are not part of a choice."""
    return connection.execute(select(func.max(targets.c.id))).scalar_one() or 0


def next_batch(connection: Connection, choice: TargetChoice, *, after: int, last: int) -> Sequence[Dossier]:
    """Up to BATCH of the chosen targets with numbers above `after`, up to `last`."""
    chosen = (
        select(targets.c.id)
        .where(*_conditions(choice), targets.c.id > after, targets.c.id <= last)
        .order_by(targets.c.id)
        .limit(BATCH)
    )
    return selection_targets.dossiers_of(connection, list(connection.execute(chosen).scalars()))


def iter_numbers(connection: Connection, choice: TargetChoice, *, limit: int) -> Iterator[int]:
    """The numbers of the chosen targets, at most `limit`."""
    chosen = select(targets.c.id).where(*_conditions(choice)).order_by(targets.c.id).limit(limit)
    yield from connection.execute(chosen).scalars()


def _conditions(choice: TargetChoice) -> list[ColumnElement[bool]]:
    if choice.wanted is not None:
        return matching(choice.wanted)
    return [targets.c.id.in_(choice.numbers), targets.c.state != TargetState.IMPORTED.value]
