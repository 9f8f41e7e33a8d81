"""Which harvests give their seeds to the lists of sites that readers see."""

from dataclasses import replace
from datetime import UTC, datetime

from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, TargetId, Url
from webdepot.services.access.browse import start_pages

WHOLE = Harvest(
    id=HarvestId("H-1"),
    target=TargetId(1),
    kind=HarvestKind.HARVEST,
    state=HarvestState.KEPT,
    seeds=(Url("http://example.org/"),),
    collection="all",
    settings={},
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def test_only_kept_harvests_of_whole_sites_have_start_pages():
    others = [replace(WHOLE, state=state) for state in HarvestState if state is not HarvestState.KEPT]
    others += [replace(WHOLE, kind=HarvestKind.PATCH), replace(WHOLE, settings={"only_page": True})]
    assert list(start_pages.of_sites([*others, WHOLE])) == [WHOLE]
