"""Actions on many sites as jobs: what the row of such a job contains, and how it continues after a kill."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

from sqlalchemy import Connection

from webdepot.accounts import accounts
from webdepot.accounts.accounts import Person
from webdepot.archive import Archive
from webdepot.engine.job_queue import JobState, QueuedJob
from webdepot.errors import NotPermitted
from webdepot.reasons import from_kept, said, to_kept
from webdepot.selection.states import TargetState
from webdepot.selection.target_batches import TargetChoice
from webdepot.selection.target_list import TargetFilter, TargetSort
from webdepot.selection.targets import Origin
from webdepot.services.admin import bulk_actions
from webdepot.services.admin.bulk_actions import BulkAct, BulkOrder, BulkResult
from webdepot.services.jobs.task import JobTask
from webdepot.services.permission import delivery


def to_arguments(
    choice: TargetChoice, order: BulkOrder, *, total: int, portal_url: str, query: str
) -> dict[str, Any]:
    """What the worker and the page need to know about an action on many sites. `query` is the filter of the
    list to return to.
    """
    day = order.look_again_on
    return {
        "numbers": list(choice.numbers),
        "filter": asdict(choice.wanted) if choice.wanted is not None else None,
        "order": asdict(order) | {"look_again_on": day.isoformat() if day else None},
        "total": total,
        "portal_url": portal_url,
        "query": query,
    }


def result_of(job: QueuedJob) -> BulkResult:
    """How far an action on many sites is."""
    values = dict(job.result if job.state is JobState.DONE else job.progress)
    known = {name: values[name] for name in ("total", "done", "after", "last") if name in values}
    refused = {from_kept(reason): count for reason, count in values.get("refused", ())}
    return BulkResult(**{"total": job.arguments["total"], **known}, refused=refused)


def run(archive: Archive, task: JobTask) -> Mapping[str, Any]:
    """Carry out an action; batches that were done before a kill are not done again."""
    given, result = task.arguments, result_of(task.job)

    def save(connection: Connection, reached: BulkResult) -> None:
        task.save(connection, **_stored(reached))

    order = BulkOrder(
        **given["order"]
        | {"act": BulkAct(given["order"]["act"]), "look_again_on": _day(given["order"]["look_again_on"])}
    )
    done = bulk_actions.run(
        archive,
        TargetChoice(numbers=given["numbers"], wanted=_filter(given["filter"])),
        order,
        person=_person(archive, task.job.by),
        portal_url=given["portal_url"],
        result=result,
        on_batch=save,
    )
    if order.act is BulkAct.ASK:
        delivery.deliver_if_configured(archive)
    return _stored(done)


def _stored(result: BulkResult) -> dict[str, Any]:
    return asdict(result) | {
        "refused": [[to_kept(reason), count] for reason, count in result.refused.items()]
    }


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _filter(values: Mapping[str, Any] | None) -> TargetFilter | None:
    if values is None:
        return None
    return TargetFilter(
        **{
            **values,
            "state": TargetState(values["state"]) if values["state"] else None,
            "origin": Origin(values["origin"]) if values["origin"] else None,
            "sort": TargetSort(values["sort"]),
        }
    )


def _person(archive: Archive, name: str) -> Person:
    """The person who started a job, with the roles that they have now."""
    with archive.database.reading() as connection:
        row = accounts.get_row(connection, name)
    if row["closed_at"] is not None:
        raise NotPermitted(said("job_person_closed", "The account of {name} was closed.", name=name))
    return Person(name=name, roles=accounts.read_roles(row["roles"]))
