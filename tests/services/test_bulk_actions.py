"""One action on many sites: what would happen, what is refused, and that each site is processed once."""

import pytest

from webdepot.accounts.accounts import Person
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.selection import target_batches
from webdepot.selection.contacts import Contact
from webdepot.selection.permission_basis import Ground
from webdepot.selection.states import TargetState
from webdepot.selection.target_batches import TargetChoice
from webdepot.selection.target_list import TargetFilter
from webdepot.services.admin import bulk_actions
from webdepot.services.admin.bulk_actions import BulkAct, BulkOrder
from webdepot.services.permission import letters, owner_answers
from webdepot.services.schedule import plans
from webdepot.services.selection import contacts, targets

pytestmark = pytest.mark.both_databases

ADA = Person(name="Ada", roles=frozenset({Role.CURATOR}))
ALL = TargetChoice(wanted=TargetFilter())


def enter(archive: Archive, count: int) -> list[int]:
    return [
        targets.enter(archive, targets.draft([f"https://s{number}.example/"], collection="news"))[0].id
        for number in range(count)
    ]


def test_an_action_on_all_that_match_meets_each_site_once(home, monkeypatch):
    monkeypatch.setattr(target_batches, "BATCH", 3)
    with Archive.open(home) as archive:
        enter(archive, 8)
        wanted = TargetChoice(wanted=TargetFilter(state=TargetState.NOMINATED))
        order = BulkOrder(act=BulkAct.PUT_OFF, reason="next year")
        assert bulk_actions.preview(archive, wanted, order.act).ready == 8
        result = bulk_actions.run(archive, wanted, order, person=ADA)
        assert (result.total, result.done, result.refused) == (8, 8, {})
        assert targets.counts(archive)[TargetState.PUT_OFF] == 8
        assert {
            event.agent for event in targets.history(archive, targets.find(archive, "s3.example").id)
        } >= {"Ada"}
        assert bulk_actions.run(archive, wanted, order, person=ADA).total == 0, "a repeated run does nothing"


def test_sites_in_another_state_are_refused_with_the_reason(home):
    with Archive.open(home) as archive:
        first, second, third = enter(archive, 3)
        targets.decide(archive, second, "reject", reason="spam")
        preview = bulk_actions.preview(archive, ALL, BulkAct.REJECT)
        assert (preview.ready, preview.total) == (2, 3)
        [refusal] = preview.refused
        assert refusal.count == 1 and [each.id for each in refusal.examples] == [second]
        ticked = TargetChoice(numbers=[second, third])
        result = bulk_actions.run(archive, ticked, BulkOrder(act=BulkAct.REJECT, reason="no"), person=ADA)
        assert result.done == 1 and list(result.refused.values()) == [1]
        assert targets.get(archive, first).state is TargetState.NOMINATED
        assert targets.get(archive, third).state is TargetState.REJECTED


@pytest.mark.parametrize(
    "order",
    [
        BulkOrder(act=BulkAct.REJECT),
        BulkOrder(act=BulkAct.COLLECTION, collection="not a name!"),
        BulkOrder(act=BulkAct.PLAN, frequency="often"),
        BulkOrder(act=BulkAct.PLAN, at_time="25:99"),
        BulkOrder(act=BulkAct.JUDGE, reason="good", criterion="nothing"),
        BulkOrder(act=BulkAct.JUDGE, criterion="national"),
    ],
)
def test_an_order_that_lacks_something_changes_nothing(home, order):
    with Archive.open(home) as archive:
        enter(archive, 2)
        with pytest.raises(InputError):
            bulk_actions.run(archive, ALL, order, person=ADA)
        assert targets.counts(archive)[TargetState.NOMINATED] == 2


def test_judging_collections_plans_and_letters(home):
    with Archive.open(home) as archive:
        numbers = enter(archive, 3)
        for criterion in ("national", "cultural"):
            order = BulkOrder(act=BulkAct.JUDGE, criterion=criterion, answer=1.0, reason="ours")
            assert bulk_actions.run(archive, ALL, order, person=ADA).done == 3
        assert targets.counts(archive)[TargetState.JUDGED] == 3
        assert bulk_actions.run(archive, ALL, BulkOrder(act=BulkAct.SELECT), person=ADA).done == 3
        moved = BulkOrder(act=BulkAct.COLLECTION, collection="papers")
        assert bulk_actions.run(archive, ALL, moved, person=ADA).done == 3
        assert {targets.get(archive, number).target.collection for number in numbers} == {"papers"}
        contacts.add_contact(archive, Contact(target=numbers[0], name="Owner", mail="o@s0.example"))
        preview = bulk_actions.preview(archive, ALL, BulkAct.ASK)
        assert preview.ready == 1 and preview.refused[0].count == 2
        asked = bulk_actions.run(archive, ALL, BulkOrder(act=BulkAct.ASK), person=ADA)
        assert asked.done == 1 and sum(asked.refused.values()) == 2
        assert len(letters.letters_of(archive, numbers[0])) == 1
        owner_answers.record_ground(archive, numbers[1], Ground.OPEN_LICENCE, reason="CC BY")
        planned = bulk_actions.run(archive, ALL, BulkOrder(act=BulkAct.PLAN, frequency="weekly"), person=ADA)
        assert planned.done == 3
        plan = plans.of_target(archive, numbers[1]).plan
        assert plan is not None and plan.changed_by == "Ada" and plan.next_at is not None
