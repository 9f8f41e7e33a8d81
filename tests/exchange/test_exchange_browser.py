"""Pages of exchange in a real browser: front pages, partners, OAI answers as pages; they fit screens and
phones and keep nobody out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from exchange_samples import portal
from partner_doubles import desk, put
from partner_offers import add, article, checksum
from playwright.sync_api import Browser, Page, expect, sync_playwright
from test_unpacked import keep, write
from test_uof_import import NAME, thesis

from looks import PASSWORD, look_at, needs_axe, signed_in
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest
from webdepot.services.intake import submissions

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Depot:
    url: str
    site: str
    slice: str
    thesis: str
    target: int


@pytest.fixture(scope="module")
def depot(tmp_path_factory) -> Iterator[Depot]:
    """A site with one slice, also unpacked; a thesis; a partner whose object was refused."""
    folder = tmp_path_factory.mktemp("exchange")
    home = folder / "home"
    name = '[archive]\nname = "Landesbibliothek Musterland"\n'
    setup.create(home, settings=f'{name}[harvest]\nprivate_networks = ["127.0.0.1/32"]\n')
    with desk() as partner, Archive.open(home, agent="test") as archive:
        accounts.add(archive.database, "anna", PASSWORD, [Role.CURATOR], archive.clock())
        put(partner, [article()], change=checksum("0" * 64))
        add(archive, partner)
        partner_admin.change(archive, "p", transfer="files")
        oai_harvest.harvest(archive, "p")
        partner_ingest.ingest(archive, "p")
        own = keep(archive, write(folder / "a.warc.gz"))
        records.write(
            archive,
            own.parent,
            {"title": "Uhrenmuseum Musterstadt", "publisher": "Stadt Musterstadt", "keywords": ["Uhren"]},
        )
        submissions.receive(archive, thesis(folder / "thesis.zip"), collection="theses")
        described = records.get(archive, NAME)
    with portal(home) as url:
        yield Depot(url=url, site=own.parent, slice=own.key, thesis=described.key, target=own.target)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser, depot: Depot) -> Iterator[Page]:
    with signed_in(browser, depot.url, "anna") as made:
        yield made


@needs_axe
def test_every_page_fits_and_keeps_nobody_out(page: Page, depot: Depot):
    paths = [
        "/partners",
        "/partners/p",
        f"/title/{depot.site}",
        f"/title/{depot.slice}",
        f"/title/{depot.thesis}",
    ]
    paths += [
        f"/targets/{depot.target}/title",
        "/catalogue",
        "/oai?verb=Identify",
        "/oai?verb=ListSets",
        "/oai?verb=ListRecords&metadataPrefix=oai_dc",
        "/oai",
    ]
    paths.append(
        f"/oai?verb=GetRecord&metadataPrefix=oai_mets_lmer&identifier=oai:localhost.localdomain:{depot.slice}"
    )
    for path in paths:
        look_at(page, depot.url, path)


def test_from_the_urn_of_a_thesis_to_its_files(page: Page, depot: Depot):
    page.goto(f"{depot.url}/urn/{NAME}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Pendulum clocks")
    page.get_by_role("link", name="thesis.html").click()
    expect(page.frame_locator("iframe").first.locator("body")).to_contain_text(
        "The escapement of Huygens", timeout=120_000
    )
