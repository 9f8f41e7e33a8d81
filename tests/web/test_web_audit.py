"""Every change is in the audit trail, with the person and the values before and after: each changing route is
called at least once.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from audit_office import ADA, CHANGING, Office, Walk
from audit_walks import (
    walk_api,
    walk_cases,
    walk_people,
    walk_plans_and_orders,
    walk_quality_and_review,
    walk_settings,
    walk_staff_pages,
    walk_the_path_of_a_site,
)
from museum import PASSWORD, serving, sign_in

from letters import LetterBox, box_running
from small_sites import cleared, small_site
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestState
from webdepot.selection import plan_dates
from webdepot.selection.domains import organisations
from webdepot.selection.domains.profile import OrganisationProfile
from webdepot.services.admin import setup
from webdepot.services.harvest import profiles, runner
from webdepot.services.schedule import plans, scheduler
from webdepot.web.language.language import load
from webdepot.web.routes import PORTAL_ROUTES

NOTHING_CHANGES = {
    "/oai": "a question by POST, as the protocol allows",
    "/searches": "a reader's own list of questions: who looks for what is nobody's business",
    "/-/seat/{address:path}": "a reader reads on: who reads what is nobody's business",
    "/-/left/{address:path}": "a reader left a page: who reads what is nobody's business",
    "/targets/import": "a list is looked at; nothing is taken in before its preview is confirmed",
    "/targets/bulk": "shows what an action on several sites would do",
    "/review/{harvest}/pictures": "pictures of what is archived, for the reviewer; nothing is changed",
    "/api/{rest:path}": "an error: there is no such interface",
    "/api/webhooks/{hook}/tests": "a message to its receiver that says that it is a test",
    "/api/letters/deliveries": "waiting letters are sent; each leaves its own event when the server takes it",
    "/profiles": "leads to the page where a profile is written; saving it is the change",
}
"""Changing requests without an event, each with its reason."""


def page_of(path: str) -> str:
    return "" if path == "/missing.png" else "<title>A</title><a href=/two>two</a><img src=/missing.png>"


@pytest.fixture(scope="module")
def box() -> Iterator[LetterBox]:
    with box_running() as running:
        yield running


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with small_site(page_of) as running:
        yield running


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, box: LetterBox, site: str) -> Iterator[Office]:
    """One person with every role; two harvests that wait for a reviewer, one that is running; an organisation
    and a partner.
    """
    home = tmp_path_factory.mktemp("audit") / "home"
    mail = (
        f'[mail]\nhost = "127.0.0.1"\nport = {box.port}\nsecurity = "none"\n'
        'sender = "archive@library.example"\n'
    )
    discovery = '[discovery]\nresolver = "127.0.0.1:9"\ntimeout_s = 0.2\n'
    places = f'[depot]\nportal_places = ["{home.parent}"]\n'
    setup.create(home, settings=f"{mail}{discovery}{places}[harvest]\nallow_private = true\n")
    with Archive.open(home) as archive:
        accounts.add(archive.database, ADA, PASSWORD, list(Role), datetime.now(UTC))
        profiles.save(archive, "quick", "delay_s = 0\nworkers = 1\n")
        *numbers, free = [cleared(archive, f"{site}/{name}") for name in ("one", "two", "free")]
        for number in numbers:
            plans.set_plan(
                archive, number, plan_dates.read_dates("yearly", first_on="2030-01-01"), profile="quick"
            )
            plans.run_now(archive, number)
        harvests = [turn.harvest for turn in scheduler.run_due(archive)]
        with archive.database.transaction() as connection:
            begun = runner.begin(
                connection, archive, numbers[0], [f"{site}/one"], profiles.options_of(archive, "quick")
            )
            harvest_rows.move(connection, begun.id, HarvestState.RUNNING)
            organisations.save(
                connection,
                OrganisationProfile(root="museum.example", host="www.museum.example"),
                now=archive.clock(),
            )
    with serving(home) as served:
        made = Office(served, [harvest for harvest in harvests if harvest], begun.id, numbers[0], free)
        made.cookie = sign_in(served, ADA)
        yield made


def test_every_changing_route_leaves_who_before_and_after(office: Office, box: LetterBox):
    walk = Walk(office)
    walk_the_path_of_a_site(walk, box)
    walk_plans_and_orders(walk)
    walk_quality_and_review(walk)
    walk_cases(walk)
    walk_api(walk)
    walk_settings(walk)
    walk_staff_pages(walk)
    walk_people(walk)
    changing = {page.path for page in PORTAL_ROUTES if CHANGING & set(page.methods)}
    assert walk.walked | set(NOTHING_CHANGES) == changing, (
        "a route that changes something and is walked nowhere"
    )
    assert not walk.walked & set(NOTHING_CHANGES)
    titles = {text for key, text in load("en").texts.items() if re.fullmatch(r"confirm\.\w+\.title", key)}
    assert walk.asked == titles - {load("en").texts["confirm.search.title"]}  # which leaves no event
