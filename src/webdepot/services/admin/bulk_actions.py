"""One action on many sites: those that were ticked, or all that a filter matches.

    order ─ check ─ preview: how many would change, which are refused and why ─ run, in batches

A batch of 200 sites is one transaction, so that others can work meanwhile and memory does not grow with the
number of sites. The transaction of each batch also stores how far the run is; an interrupted run continues
there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from sqlalchemy import Connection

from webdepot.accounts.accounts import Person
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotPermitted
from webdepot.model import TargetId
from webdepot.reasons import Reason, said
from webdepot.selection import plan_dates, target_batches
from webdepot.selection.criteria import Judgement
from webdepot.selection.plan_dates import Dates
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.target_batches import TargetChoice
from webdepot.selection.targets import Dossier
from webdepot.services.harvest import profiles
from webdepot.services.permission import letters
from webdepot.services.permission.letters import Asking
from webdepot.services.schedule import plans
from webdepot.services.selection import criteria, targets

MOST_EXAMPLES = 5
MOST_REASONS = 50
_S = TargetState
_PLANNED = frozenset({_S.SELECTED, _S.ASKED, _S.CLEARED})


class BulkAct(StrEnum):
    NOMINATE = "nominate"
    JUDGE = "judge"
    SELECT = "select"
    PUT_OFF = "put off"
    REJECT = "reject"
    REOPEN = "reopen"
    END = "end"
    COLLECTION = "collection"
    PLAN = "plan"
    ASK = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOrder:
    """What is done with each site; fields that the action does not use are ignored."""

    act: BulkAct
    reason: str = ""
    look_again_on: date | None = None
    collection: str = ""
    frequency: str = "monthly"
    first_on: str = ""
    at_time: str = "03:00"
    profile: str = ""
    criterion: str = ""
    answer: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Sites that an action leaves as they are."""

    reason: str
    count: int
    examples: Sequence[Dossier] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    ready: int
    refused: Sequence[Refusal]

    @property
    def total(self) -> int:
        return self.ready + sum(each.count for each in self.refused)


@dataclass(slots=True, kw_only=True)
class BulkResult:
    """What a run has done so far, and where it continues after an interruption."""

    total: int = 0
    done: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """How many sites were refused for each reason."""
    after: int = 0
    """The number of the last site it has seen."""
    last: int = 0
    """The number of the last site that there was when it began."""

    @property
    def seen(self) -> int:
        return self.done + sum(self.refused.values())

    def refuse(self, reason: str) -> None:
        if reason in self.refused or len(self.refused) < MOST_REASONS:
            self.refused[reason] = self.refused.get(reason, 0) + 1
        else:
            rest = said("other_reasons", "other reasons")
            self.refused[rest] = self.refused.get(rest, 0) + 1


OnBatch = Callable[[Connection, BulkResult], None]


def _ignore(_connection: Connection, _result: BulkResult) -> None:
    """For callers who do not store how far a run is."""


def check(archive: Archive, order: BulkOrder) -> None:
    """InputError if something is missing that the action needs."""
    if order.act in (*targets.NEEDS_REASON, BulkAct.JUDGE) and not order.reason.strip():
        raise InputError(said("say_why_act", "Give a reason: the step {act} needs one.", act=order.act))
    if order.act is BulkAct.COLLECTION:
        targets.check_collection(order.collection)
    if order.act is BulkAct.PLAN:
        _dates(archive, order)
        profiles.options_of(archive, order.profile)
    if order.act is BulkAct.JUDGE and order.criterion not in {
        one.code for one in criteria.criteria_of(archive)
    }:
        raise InputError(said("choose_criterion", "Choose the criterion to answer."))


def preview(archive: Archive, choice: TargetChoice, act: BulkAct) -> BulkPreview:
    """How many sites an action would change, and which it refuses; nothing is changed."""
    if act is BulkAct.ASK:
        return _preview_letters(archive, choice)
    ready, refused = 0, []
    with archive.database.reading() as connection:
        for state, count in target_batches.count_by_state(connection, choice).items():
            if allows(state, act):
                ready += count
            else:
                shown = target_batches.examples(connection, choice, state, MOST_EXAMPLES)
                refused.append(Refusal(reason=_its_state(state), count=count, examples=shown))
    return BulkPreview(ready=ready, refused=refused)


def _preview_letters(archive: Archive, choice: TargetChoice) -> BulkPreview:
    with archive.database.reading() as connection:
        numbers = list(target_batches.iter_numbers(connection, choice, limit=letters.MOST_LETTERS))
    asking = letters.consider(archive, numbers)
    refused: dict[str, list[Dossier]] = {}
    for dossier, reason in asking.left_out:
        refused.setdefault(reason, []).append(dossier)
    return BulkPreview(
        ready=len(asking.ready),
        refused=[
            Refusal(reason=reason, count=len(each), examples=each[:MOST_EXAMPLES])
            for reason, each in refused.items()
        ],
    )


def run(
    archive: Archive,
    choice: TargetChoice,
    order: BulkOrder,
    *,
    person: Person,
    portal_url: str = "",
    result: BulkResult | None = None,
    on_batch: OnBatch = _ignore,
) -> BulkResult:
    """Carry out an order on the chosen sites. `result` is where an interrupted run was; it is filled while it
    runs, and given to `on_batch` in the transaction of each batch.
    """
    check(archive, order)
    result = result if result is not None else BulkResult()
    if not result.last:
        with archive.database.reading() as connection:
            result.last = target_batches.last_number(connection)
            result.total = sum(target_batches.count_by_state(connection, choice).values())
    while True:
        with archive.database.reading() as connection:
            batch = target_batches.next_batch(connection, choice, after=result.after, last=result.last)
        if not batch:
            return result
        result.after = batch[-1].id
        if order.act is BulkAct.ASK:
            _ask(archive, batch, result, on_batch, person=person, portal_url=portal_url)
        else:
            _change(archive, batch, order, result, on_batch, person=person)


def _ask(
    archive: Archive,
    batch: Sequence[Dossier],
    result: BulkResult,
    on_batch: OnBatch,
    *,
    person: Person,
    portal_url: str,
) -> None:
    def count(connection: Connection, outcome: Asking) -> None:
        result.done += len(outcome.ready)
        for _, reason in outcome.left_out:
            result.refuse(reason)
        on_batch(connection, result)

    letters.ask(
        archive,
        [dossier.id for dossier in batch],
        by=person.name,
        portal_url=portal_url,
        on_asked=count,
    )


def _change(
    archive: Archive,
    batch: Sequence[Dossier],
    order: BulkOrder,
    result: BulkResult,
    on_batch: OnBatch,
    *,
    person: Person,
) -> None:
    work = _WORK.get(order.act, _decide)
    with archive.database.transaction() as connection:
        for dossier in batch:
            try:
                if not allows(dossier.state, order.act):
                    raise Conflict(_its_state(dossier.state))
                work(connection, archive, dossier, order, person)
                result.done += 1
            except (Conflict, NotPermitted) as error:
                result.refuse(error.args[0])
        on_batch(connection, result)


def _decide(
    connection: Connection, archive: Archive, dossier: Dossier, order: BulkOrder, person: Person
) -> None:
    again_on = order.look_again_on if order.act is BulkAct.PUT_OFF else None
    reason = order.reason.strip()
    targets.step(
        connection, archive, dossier, order.act, by=person.name, reason=reason, look_again_on=again_on
    )


def _judge(
    connection: Connection, archive: Archive, dossier: Dossier, order: BulkOrder, person: Person
) -> None:
    given = Judgement(criterion=order.criterion, value=order.answer, words=order.reason, reason=order.reason)
    criteria.answer_in(connection, archive, dossier.id, [given], person=person)


def _collect(
    connection: Connection, archive: Archive, dossier: Dossier, order: BulkOrder, person: Person
) -> None:
    if dossier.target.collection != order.collection:
        targets.move_to_collection(connection, archive, dossier, order.collection, by=person.name)


def _plan(
    connection: Connection, archive: Archive, dossier: Dossier, order: BulkOrder, person: Person
) -> None:
    plans.set_plan_in(
        connection,
        archive,
        TargetId(dossier.id),
        _dates(archive, order),
        profile=order.profile,
        by=person.name,
    )


_WORK: Mapping[BulkAct, Callable[[Connection, Archive, Dossier, BulkOrder, Person], None]] = {
    BulkAct.JUDGE: _judge,
    BulkAct.COLLECTION: _collect,
    BulkAct.PLAN: _plan,
}


def _dates(archive: Archive, order: BulkOrder) -> Dates:
    today = archive.clock().astimezone(plans.zone(archive)).date().isoformat()
    return plan_dates.read_dates(order.frequency, first_on=order.first_on or today, at_time=order.at_time)


def allows(state: TargetState, act: BulkAct) -> bool:
    """Whether an action is possible for sites in a state."""
    match act:
        case BulkAct.COLLECTION:
            return state is not _S.IMPORTED
        case BulkAct.PLAN:
            return state in _PLANNED
        case _:
            return TARGET.allows(state, act)


def _its_state(state: TargetState) -> Reason:
    return said("it_is", "its state is: {state}", state=state)
