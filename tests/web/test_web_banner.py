"""What the banner shows next to the page: how to cite it, what was wrong with it then and is now; and correct statuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from museum import NOW, Served, Warc, ask, make_home, serving

from webdepot.access.citation import Citation, CitationForm, write
from webdepot.archive import Archive
from webdepot.exchange import catalogue
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.services.harvest import harvests
from webdepot.services.index import indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched

SITE = "http://www.tower.example"
STAMP = "20150304050607"


@pytest.fixture(scope="module")
def tower(tmp_path_factory: pytest.TempPathFactory):
    """One harvest with a URN; one imported container whose file is gone."""
    folder = tmp_path_factory.mktemp("tower")
    kept, lost = Warc(folder / "kept.warc.gz"), Warc(folder / "lost.warc.gz")
    kept.response(f"{SITE}/", STAMP, b"<title>The tower &amp; {its} clock</title><h1>Tower</h1>")
    kept.response(f"{SITE}/gone", STAMP, b"<title>Gone</title>gone", status="410 Gone")
    kept.response(f"{SITE}/broken", STAMP, b"<title>Oh</title>sorry", status="503 Service Unavailable")
    kept.revisit(f"{SITE}/orphan", STAMP, b"never seen", of_url=f"{SITE}/nowhere", of_stamp="20140101000000")
    lost.response(f"{SITE}/lost", STAMP, b"<title>Lost</title>lost")
    lost.response(f"{SITE}/lost.png", STAMP, b"\x89PNG", mime="image/png")
    home = make_home(folder / "home", kept.write(), settings='[archive]\nname = "Archive of Towers"\n')
    with Archive.open(home, clock=lambda: NOW) as archive:
        (harvest,) = harvests.latest(archive, 5)
        with archive.database.transaction() as connection:
            facts = {
                "key": "tower-1",
                "level": RecordLevel.SLICE,
                "urn": "urn:nbn:de:0000-tower",
                "title": "Tower",
                "harvest": harvest.id,
            }
            catalogue.put(connection, CatalogueRecord(**facts, created_at=NOW, changed_at=NOW))
        taken = warc_files.take_files(archive, [lost.write()], collection="museums", watch=unwatched)
        assert taken.harvest is not None
        indexer.index_harvest(archive, taken.harvest.id)
        for path in home.rglob("*lost*.warc.gz"):
            path.unlink()
    with serving(home) as running:
        yield running


def test_a_version_is_cited_with_its_urn(tower: Served):
    text = ask(f"{tower.frame}/all/{STAMP}/{SITE}/").text
    assert (
        "The tower &amp; {its} clock. http://www.tower.example/. "
        "Archived on 4 March 2015, 05:06 UTC by Archive of Towers." in text
    )
    assert "urn:nbn:de:" in text and f"{tower.portal}/all/{STAMP}/{SITE}/" in text


@pytest.mark.parametrize("form", list(CitationForm))
def test_a_citation_can_be_taken_along(tower: Served, form: CitationForm):
    answer = ask(f"{tower.portal}/cite?url={SITE}/&at={STAMP}&form={form}")
    assert answer.status == 200 and "attachment" in answer.headers["Content-Disposition"]
    assert (
        "urn:nbn:de:" in answer.text
        and "Archive of Towers" in answer.text
        and f"/all/{STAMP}/{SITE}/" in answer.text
    )
    assert (
        r"title = {The tower \& \{its\} clock}"
        if form is CitationForm.BIBTEX
        else "TI  - The tower & {its} clock\r\n"
    ) in answer.text
    later = ask(f"{tower.portal}/cite?url={SITE}/&at=2030&form={form}").text
    assert f"/all/{STAMP}/{SITE}/" in later and "/all/2030" not in later, (
        "the version, not what was asked for"
    )
    assert ask(f"{tower.portal}/cite?url={SITE}/never&at={STAMP}&form={form}").status == 404


@pytest.mark.parametrize(
    "query", ["", "url=http://a.org/&form=word", "at=2015", "url=http://a.org/&at=99", "url=%00&at=2015"]
)
def test_a_wrong_request_for_a_citation_is_explained(tower: Served, query: str):
    answer = ask(f"{tower.portal}/cite?{query}")
    assert answer.status in (400, 404) and "Traceback" not in answer.text


@given(st.text(), st.text(), st.sampled_from(CitationForm))
def test_no_title_breaks_out_of_its_field(title: str, archive: str, form: CitationForm):
    said = write(
        Citation(title=title, url="http://a.org/", timestamp=STAMP, archive=archive, address="http://b.org/"),
        form,
    )
    lines = said.splitlines()
    assert len(lines) == 8
    assert all(line[2:6] == "  - " for line in lines) if form is CitationForm.RIS else lines[-1] == "}"


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/", 200, "Shown as it was on 4 March 2015"),
        ("/gone", 410, "On that day the server returned: Not found (410)."),
        ("/broken", 503, "On that day the server returned: Server error (503)."),
        ("/orphan", 404, "its file cannot be read at the moment"),
        ("/lost", 500, "its file cannot be read at the moment"),
        ("/lost.png", 500, "its file cannot be read at the moment"),
        ("/never", 404, "This address is not in the archive"),
    ],
)
def test_a_frame_has_the_status_of_its_page(tower: Served, path: str, status: int, words: str):
    answer = ask(f"{tower.frame}/all/{STAMP}/{SITE}{path}")
    assert (answer.status, words in answer.text) == (status, True)


def test_a_problem_is_reported_with_address_and_moment(tower: Served):
    text = ask(f"{tower.frame}/all/{STAMP}/{SITE}/").text
    assert f"{tower.portal}/complain?url=http%3A%2F%2Fwww.tower.example%2F&amp;at={STAMP}" in text
