"""Access rules are the same in every interface: list, calendar, frame, banner, raw replay, TimeMap, TimeGate,
search box.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from museum import EDITIONS, SITE, Served, ask, make_home, serving

from webdepot.access import rule_rows
from webdepot.access.policy import Rule, RuleAnswer
from webdepot.archive import Archive

WORDS = "Closed at the wish of the museum until 2030."


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory, museum: Path):
    """2012 is refused for the whole site, the news of 2009 hidden, 2019 shown with a warning, the leaflet
    hidden.
    """
    home = make_home(tmp_path_factory.mktemp("ruled") / "home", museum)
    made = datetime(2026, 1, 1, tzinfo=UTC)
    year = {"captured_from": "20120101000000", "captured_to": "20121231235959"}
    with Archive.open(home) as archive, archive.database.transaction() as connection:
        for given in (
            {"prefix": "org,example)", "answer": RuleAnswer.REFUSE, "public_text": WORDS, **year},
            {"prefix": "org,example)/news", "answer": RuleAnswer.HIDE, "captured_to": "20091231235959"},
            {"prefix": "org,example)/news", "answer": RuleAnswer.HIDE, **year},
            {"prefix": "org,example)/leaflet", "answer": RuleAnswer.HIDE},
            {"prefix": "org,example)/data", "answer": RuleAnswer.REFUSE, "public_text": WORDS},
            {
                "prefix": "org,example)/news",
                "answer": RuleAnswer.SHOW,
                "public_text": "This page contains errors.",
                "captured_from": "2019",
            },
        ):
            rule_rows.add(connection, Rule(id=0, created_at=made, **given))
    with serving(home) as running:
        yield running


def test_the_list_and_the_calendar_leave_out_what_is_closed(ruled: Served):
    text = ask(f"{ruled.portal}/all/*/{SITE}/").text
    assert "Archived 2 times" in text and "2012*" not in text


def test_a_closed_version_is_passed_over_for_the_nearest_open_one(ruled: Served):
    answer = ask(f"{ruled.frame}/all/{EDITIONS[1]}/{SITE}/")
    assert answer.headers["Location"] == f"/all/{EDITIONS[0]}/{SITE}/"
    text = ask(f"{ruled.frame}/all/{EDITIONS[0]}/{SITE}/").text
    assert "version 1 of 2" in text and EDITIONS[1] not in text and EDITIONS[2] not in text
    raw = ask(f"{ruled.replay}/all/{EDITIONS[1]}id_/{SITE}/")
    assert raw.headers["Content-Location"] == f"/all/{EDITIONS[0]}id_/{SITE}/"


def test_an_address_that_is_closed_altogether_is_451_with_the_text_of_the_rule(ruled: Served):
    for address in (
        f"{ruled.portal}/all/*/{SITE}/data.json",
        f"{ruled.frame}/all/{EDITIONS[1]}/{SITE}/data.json",
        f"{ruled.replay}/all/{EDITIONS[1]}id_/{SITE}/data.json",
        f"{ruled.replay}/all/timemap/link/{SITE}/data.json",
    ):
        answer = ask(address)
        assert answer.status == 451, address
        assert WORDS in answer.text, address
    gate = ask(
        f"{ruled.replay}/all/{SITE}/data.json", headers={"Accept-Datetime": "Sat, 02 Jun 2012 00:00:00 GMT"}
    )
    assert gate.status == 451


def test_pages_and_banners_of_what_is_closed_name_its_address(ruled: Served):
    for address in (
        f"{ruled.portal}/all/*/{SITE}/data.json",
        f"{ruled.frame}/all/{EDITIONS[1]}/{SITE}/data.json",
    ):
        assert f'<p class="address">{SITE}/data.json</p>' in ask(address).text, address
    banner = ask(f"{ruled.frame}/-/banner/all/{EDITIONS[1]}/{SITE}/data.json")
    assert banner.status == 451
    assert (
        'class="banner-inner missing"' in banner.text
        and "Access is closed" in banner.text
        and f"{SITE}/data.json" in banner.text
    )


def test_what_is_hidden_is_as_if_it_were_not_there(ruled: Served):
    for address in (
        f"{ruled.portal}/all/*/{SITE}/leaflet.pdf",
        f"{ruled.frame}/all/{EDITIONS[3]}/{SITE}/leaflet.pdf",
        f"{ruled.replay}/all/{EDITIONS[3]}id_/{SITE}/leaflet.pdf",
        f"{ruled.replay}/all/timemap/link/{SITE}/leaflet.pdf",
        f"{ruled.frame}/-/banner/all/{EDITIONS[3]}/{SITE}/leaflet.pdf",
    ):
        hidden, absent = ask(address), ask(address.replace("leaflet", "nothing"))
        assert hidden.status == absent.status == 404, address
        assert hidden.text.replace("leaflet", "nothing") == absent.text, address


def test_a_warning_is_in_the_banner(ruled: Served):
    text = ask(f"{ruled.frame}/all/{EDITIONS[3]}/{SITE}/news.html").text
    assert "This page contains errors." in text and "the only version" in text
    assert "This page contains errors." not in ask(f"{ruled.frame}/all/{EDITIONS[3]}/{SITE}/").text


def test_the_time_map_has_what_is_open(ruled: Served):
    text = ask(f"{ruled.replay}/all/timemap/link/{SITE}/").text
    assert text.count('rel="memento"') == 2 and EDITIONS[1] not in text


def test_an_address_typed_in_the_search_box_does_not_tell_that_it_is_hidden(ruled: Served):
    assert ask(f"{ruled.portal}/search?q=www.example.org/leaflet.pdf").status == 200


def test_search_leaves_out_what_is_closed(ruled: Served):
    text = ask(f"{ruled.portal}/search?q=clock").text
    assert "<mark>" in text and "2012" not in text.partition('class="hits"')[2].partition("</ol>")[0]
