"""One way in Chromium: nomination, letter, the term passes, scheduled harvest, review, catalogue, public page, complaint, closed.

The server is the real one, in a process of its own; its clock is a file that the test moves. Letters arrive at an SMTP server on loopback.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letters import LetterBox
from webdepot import accounts
from webdepot.accounts import Role
from webdepot.archive import Archive
from webdepot.services import founding

PASSWORD = "correct horse battery"
CLOCK = """
import json, sys
from datetime import datetime
from pathlib import Path
from webdepot.archive import Archive
home, moment = Path(sys.argv[1]), Path(sys.argv[2])
clock = lambda: datetime.fromisoformat(moment.read_text())
"""
SERVER = (
    CLOCK
    + """
from webdepot.web.serve import serve
with Archive.open(home, clock=clock) as archive:
    serve(archive, host="127.0.0.1", port=0, replay_port=0, ready=lambda portal, replay: print(json.dumps([portal, replay]), flush=True))
"""
)
SCHEDULER = (
    CLOCK
    + """
from webdepot.services import scheduling, tending
with Archive.open(home, clock=clock) as archive:
    tending.tend_letters(archive)
    print([turn.state.value for turn in scheduling.run_due(archive)])
"""
)


class Office:
    """A home, its clock, and what runs on them."""

    def __init__(self, folder: Path, box: LetterBox) -> None:
        self.home, self.moment = folder / "home", folder / "clock"
        self.now = datetime(2026, 11, 2, 9, tzinfo=UTC)
        self.move(0)
        settings = (
            f'[mail]\nhost = "127.0.0.1"\nport = {box.port}\nsecurity = "none"\nsender = "archive@library.example"\n'
            "[harvest]\nallow_private = true\ndelay_s = 0\nretry_delay_s = 0\n"
        )
        founding.found(self.home, settings=settings, clock=lambda: self.now)
        with Archive.open(self.home, clock=lambda: self.now) as archive:
            accounts.add(archive.database, "boss", PASSWORD, [Role.ADMINISTRATOR], self.now)

    def move(self, days: int) -> None:
        self.now += timedelta(days=days)
        self.moment.write_text(self.now.isoformat())

    def schedule(self) -> str:
        command = [sys.executable, "-c", SCHEDULER, str(self.home), str(self.moment)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout.splitlines()[-1]


@pytest.fixture
def office(tmp_path: Path, letter_box: LetterBox) -> Office:
    return Office(tmp_path, letter_box)


@pytest.fixture
def portal(office: Office) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(office.home), str(office.moment)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())[0]
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    process.stdout.close()


@pytest.mark.browser
def test_from_a_nomination_to_a_closed_page(office: Office, portal: str, letter_box: LetterBox, site, chromium):
    head = '<meta name="author" content="J. Uurwerk"><meta name="keywords" content="clocks, hours">'
    site.pages["/"] = (200, {"Content-Type": "text/html"}, f"<html lang=en><title>Clocks</title>{head}<a href=/a.html>a</a>".encode())
    site.page("/a.html", "A clock", "<p>It ticks.</p>")
    page = chromium.new_page()

    def sign_in() -> None:
        page.goto(f"{portal}/sign-in")
        page.get_by_label("Name").fill("boss")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()

    sign_in()
    page.goto(f"{portal}/targets/new")
    page.get_by_label("Addresses to start from").fill(site.url)
    page.get_by_label("Name").fill("Museum of clocks")
    page.get_by_role("button", name="Nominate it").click()
    target = page.url
    for code in ("national", "cultural"):
        page.get_by_label(f"Answer to {code}").select_option("yes")
        page.get_by_label(f"Reason for {code}").fill("because")
    page.get_by_role("button", name="Sign the answers").click()
    page.get_by_role("button", name="Select").click()
    page.get_by_text("Add a contact").first.click()
    page.get_by_label("Mail address").fill("owner@museum.example")
    page.get_by_role("button", name="Add a contact").click()
    page.get_by_role("link", name="Preview of the letter").click()
    page.get_by_role("button", name="Send this letter").click()
    assert letter_box.to("owner@museum.example"), "the letter arrived"

    page.goto(target.replace("/targets/", "/schedule/targets/"))
    page.get_by_label("How often").select_option("weekly")
    page.locator("#first_on").fill("2026-11-12")
    page.locator("#at_time").fill("09:00")
    page.get_by_role("button", name="Save").click()
    office.move(10)
    assert "refused" in office.schedule(), "the term runs: the harvest is refused"
    assert not site.requests

    office.move(21)
    assert "done" in office.schedule()
    assert site.requests["/a.html"] == 1
    sign_in()
    page.goto(f"{portal}/all/*/{site.url}/")
    assert "It ticks" not in page.content(), "not public before it is accepted"
    page.goto(f"{portal}/review")
    page.locator("a[href^='/review/20']").first.click()
    page.locator("button[value=accept]").click()
    for _ in range(90):  # it is kept and indexed beside the portal
        if page.goto(f"{portal}/all/*/{site.url}/a.html").status == 200:
            break
        page.wait_for_timeout(500)
    page.goto(f"{target}/title")
    assert page.get_by_label("Creators").input_value() == "J. Uurwerk"
    page.get_by_label("Genre").fill("museum")
    page.get_by_role("button", name="Save").click()

    reader = chromium.new_page()
    reader.goto(f"{portal}/catalogue?genre=museum&keyword=clocks")
    reader.get_by_role("link", name="Clocks", exact=True).first.click()
    assert "J. Uurwerk" in reader.content() and "application/ld+json" in reader.content()
    address = f"{portal}/all/20261201/{site.url}/a.html"
    assert reader.goto(address).status == 200
    reader.goto(f"{portal}/complain?url={site.url}/a.html")
    reader.get_by_label("What is wrong").fill("It is my clock.")
    reader.get_by_label("Mail address").fill("me@home.example")
    reader.get_by_role("button", name="Send").click()
    reference = re.findall(r"C-2026-\w{6}", reader.content())[0]

    page.goto(f"{portal}/cases/{reference}")
    page.locator("input[name=decision][value=closed]").check()
    page.get_by_label("What readers see").fill("Closed after an objection.")
    page.get_by_role("button", name="Decide").click()
    closed = reader.goto(address)
    assert closed.status == 451 and "Closed after an objection." in reader.content()
    office.schedule()
    assert len(letter_box.to("me@home.example")) == 2
