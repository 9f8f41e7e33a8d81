"""The page that compares two versions, with screenshots where a harvest took them."""

from collections.abc import Iterator

import pytest
from museum import EDITIONS, NOW, PICTURE, SITE, Served, Warc, ask, make_home, serving

from webdepot.access.policy import RuleAnswer
from webdepot.archive import Archive
from webdepot.services.access import rules
from webdepot.services.harvest import harvests
from webdepot.services.quality import harvest_check

SHOTS = "http://shots.example"
FIRST, SECOND = "20150101000000", "20160101000000"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("compared")
    warcs = []
    for number, stamp in enumerate((FIRST, SECOND)):
        warc = Warc(folder / f"{number}.warc.gz")
        warc.response(
            f"{SHOTS}/",
            stamp,
            f"<title>S</title><p>Hours: ten to {number + 4}</p><a href='/{number}'>a</a>".encode(),
        )
        many = "".join(f"<a href='/{number}-{each}'>a</a>" for each in range(201))
        warc.response(f"{SHOTS}/links", stamp, f"<p>Same</p>{many}".encode())
        warc.response(f"{SHOTS}/menu", stamp, f"<p>Same text</p><nav>Menu {number}</nav>".encode())
        warc.response(f"{SHOTS}/same", stamp, b"<title>S</title><p>Same</p>")
        warc.response(f"{SHOTS}/closed", stamp, f"<p>{number}</p>".encode())
        fields = {"WARC-Type": "resource", "Content-Type": "image/png"}
        warc.raw(f"urn:view:{SHOTS}/", stamp, PICTURE, fields)
        warcs.append(warc.write())
    alone = Warc(folder / "alone.warc.gz").response(f"{SHOTS}/once", FIRST, b"<p>once</p>")
    home = make_home(folder / "home", *warcs, alone.write())
    with Archive.open(home, clock=lambda: NOW) as archive:
        for harvest in harvests.latest(archive, 5):
            harvest_check.note_screenshots(archive, harvest)
        rules.add(
            archive, f"{SHOTS}/closed", answer=RuleAnswer.REFUSE, captured_to="2015", public_text="Closed."
        )
    with serving(home) as running:
        yield running


def test_words_links_and_screenshots(compared: Served):
    text = ask(f"{compared.frame}/compare?url={SHOTS}/&at={SECOND}").text
    assert "<del>4</del>" in text and "<ins>5</ins>" in text and "2 lines differ" in text
    assert f"{SHOTS}/0" in text and f"{SHOTS}/1" in text
    assert text.count('class="over"') == 1 and text.count("<iframe") == 2
    picture = ask(f"{compared.frame}/compare/picture?url={SHOTS}/&at={FIRST}")
    assert (picture.status, picture.body, picture.headers["Content-Type"]) == (200, PICTURE, "image/png")
    assert ask(f"{compared.frame}/compare/picture?url={SHOTS}/same&at={FIRST}").status == 404


def test_a_long_list_of_links_says_that_it_is_cut(compared: Served):
    text = ask(f"{compared.frame}/compare?url={SHOTS}/links&at={SECOND}").text
    assert f"{SHOTS}/1-199<" in text and f"{SHOTS}/1-200<" not in text
    assert "Only the first 200 added and the first 200 removed are shown." in text
    assert "Only the first part of a long page" not in text


def test_menus_do_not_count_as_text(compared: Served):
    text = ask(f"{compared.frame}/compare?url={SHOTS}/menu&at={SECOND}").text
    assert "only menus and footers differ" in text and "Menus and footers: 2 lines differ" in text


def test_a_version_is_compared_with_the_latest_and_the_others_are_links(served: Served):
    first, middle, last = EDITIONS[0], EDITIONS[1], EDITIONS[-1]
    text = ask(f"{served.frame}/compare?url={SITE}/&at={first}").text
    assert f'<option value="{last}" selected>' in text and f"at={first}&amp;with={middle}&amp;" in text
    text = ask(f"{served.frame}/compare?url={SITE}/&at={last}").text
    assert f'<option value="{EDITIONS[-2]}" selected>' in text, "the latest with the one before it"


def test_the_same_bytes(compared: Served):
    assert "byte for byte" in ask(f"{compared.frame}/compare?url={SHOTS}/same&at={SECOND}&with={FIRST}").text


@pytest.mark.parametrize("query", ["", "url=&at=2015", f"url={SHOTS}/&at=99", f"url={SHOTS}/&with=x"])
def test_a_wrong_request_is_explained(compared: Served, query: str):
    answer = ask(f"{compared.frame}/compare?{query}")
    assert answer.status == 400 and "Traceback" not in answer.text


def test_what_cannot_be_compared(compared: Served):
    once = ask(f"{compared.frame}/compare?url={SHOTS}/once&at={FIRST}")
    assert once.status == 404 and "only one version" in once.text
    assert ask(f"{compared.frame}/compare?url={SHOTS}/never&at={FIRST}").status == 404
    closed = ask(f"{compared.frame}/compare?url={SHOTS}/closed&at={FIRST}&with={SECOND}")
    assert "1 January 2015" not in closed.text and "<p>0<" not in closed.text, (
        "a closed version is as if it were not there"
    )


def test_the_portal_redirects_to_the_origin_that_may_frame_pages(served: Served):
    answer = ask(f"{served.portal}/compare?url={SITE}/&at={EDITIONS[1]}")
    assert answer.status == 302 and answer.headers["Location"].startswith(served.frame)
