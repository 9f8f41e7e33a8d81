"""One workflow in Chromium, by keyboard alone: nomination, assessment, letter, the deadline passes, answer, scheduled
harvest, review, catalogue, public page, complaint, the page is closed.

The server is the real one, in a process of its own; its clock is a file that the test moves. Letters arrive
at an SMTP server on loopback.
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

from keyboard import Keyboard
from letters import LetterBox
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.admin import setup

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
from webdepot.services.schedule import chores, scheduler
with Archive.open(home, clock=clock) as archive:
    chores.process_letters(archive)
    print([turn.state.value for turn in scheduler.run_due(archive)])
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
        setup.create(self.home, settings=settings, clock=lambda: self.now)
        with Archive.open(self.home, clock=lambda: self.now) as archive:
            accounts.add(archive.database, "boss", PASSWORD, [Role.ADMINISTRATOR], self.now)

    def move(self, days: int) -> None:
        self.now += timedelta(days=days)
        self.moment.write_text(self.now.isoformat())

    def schedule(self) -> str:
        command = [sys.executable, "-c", SCHEDULER, str(self.home), str(self.moment)]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=240
        ).stdout.splitlines()[-1]


@pytest.fixture
def office(tmp_path: Path, letter_box: LetterBox) -> Office:
    return Office(tmp_path, letter_box)


@pytest.fixture
def portal(office: Office) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(office.home), str(office.moment)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())[0]
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    process.stdout.close()


@pytest.mark.browser
def test_from_a_nomination_to_a_closed_page_by_keyboard_alone(
    office: Office, portal: str, letter_box: LetterBox, site, chromium
):
    head = '<meta name="author" content="J. Uurwerk"><meta name="keywords" content="clocks, hours">'
    words = "<p>The museum has all the clocks of the city, and we show them to everybody who likes to look at what time it is.</p>"
    site.pages["/"] = (
        200,
        {"Content-Type": "text/html"},
        f"<html><title>Clocks</title>{head}<a href=/a.html>a</a>{words}".encode(),
    )
    site.page("/a.html", "A clock", "<p>It ticks.</p>")
    page, reader = chromium.new_page(), chromium.new_page()
    staff, public = Keyboard(page), Keyboard(reader)

    staff.sign_in(portal, "boss", PASSWORD)
    staff.open("Select")
    staff.go("Sites")
    staff.skip()
    staff.go("Nominate a site")
    staff.skip()
    staff.type("Seeds", site.url)
    staff.type("Name", "Museum of clocks")
    staff.go("Nominate site", "button")
    target = page.url
    staff.skip()
    for code in ("national", "cultural"):
        staff.choose(f"Answer to {code}", "yes")
        staff.type(f"Reason for {code}", "because")
    staff.go("Save assessment")
    staff.skip()
    staff.go("Select", "button")
    staff.skip()
    staff.go("Add contact")
    staff.skip()
    staff.type("Email address", "owner@museum.example")
    staff.go("Add contact", "button")
    staff.skip()
    staff.go("Preview letter")
    staff.skip()
    staff.go("Send letter")
    [letter] = letter_box.to("owner@museum.example")

    page.goto(f"{target.partition('#')[0]}?tab=harvests")
    staff.skip()
    staff.go("Harvest plan", "a")
    staff.skip()
    staff.choose("Frequency", "weekly")
    staff.type("First day", "11122026")
    staff.type("Time", "0900AM")
    staff.go("Save")
    office.move(10)
    assert "refused" in office.schedule(), "the deadline has not passed: the harvest is refused"
    assert set(site.requests) <= {"/robots.txt", "/"}, "only the start URL was checked"
    office.move(21)
    assert "done" in office.schedule()
    assert site.requests["/a.html"] == 1

    reader.goto(re.findall(r"http\S+/answer/\S+", letter.text)[0])
    public.skip()
    public.mark("consent")
    public.type("Is there anything else", "Gladly.")
    public.go("Send answer", "button")
    assert "Thank you" in reader.content()

    staff.sign_in(portal, "boss", PASSWORD)
    page.goto(f"{portal}/all/*/{site.url}/")
    assert "It ticks" not in page.content(), "not public before it is accepted"
    page.goto(portal)
    staff.open("Harvest")
    staff.go("Review")
    staff.skip()
    staff.go(site.url)
    staff.skip()
    staff.go("Accept harvest")
    staff.skip()
    staff.go("Yes, accept it", "button")
    for _ in range(90):  # it is kept and indexed beside the portal
        if page.goto(f"{portal}/all/*/{site.url}/a.html").status == 200:
            break
        page.wait_for_timeout(500)

    reader.goto(portal)
    public.go("Catalogue")
    public.skip()
    public.type("Creator", "uurwerk")
    public.type("Subject", "clock")
    public.press("Enter")
    public.page.wait_for_url("**creator=uurwerk**")
    public.skip()
    public.go("Clocks")
    assert "J. Uurwerk" in reader.content() and "application/ld+json" in reader.content(), (
        "described without a person"
    )
    page.goto(target)
    staff.skip()
    staff.go("Describe the site")
    assert page.get_by_label("Languages").input_value() == "en", "by its words: the site declares none"
    staff.skip()
    staff.replace_text("Genre", "museum")
    staff.go("Save")
    reader.goto(f"{portal}/catalogue?genre=museum")
    public.skip()
    public.go("Clocks")

    address = f"{portal}/all/20261201/{site.url}/a.html"
    assert reader.goto(address).status == 200
    reader.goto(f"{portal}/complain?url={site.url}/a.html")
    public.skip()
    public.choose("Who are you", "rights holder")
    public.choose("What is the complaint", "copyright")
    public.type("What is wrong", "It is my clock.")
    public.type("Email address", "me@home.example")
    public.go("Send complaint")
    reference = re.findall(r"C-2026-\w{6}", reader.content())[0]

    page.goto(portal)
    staff.open("Select")
    staff.go("Complaints")
    staff.skip()
    staff.go(reference)
    staff.skip()
    staff.mark("closed")
    staff.type("Text for readers", "Closed after an objection.")
    staff.go("Decide case", "button")
    staff.skip()
    staff.go("Yes, decide", "button")
    closed = reader.goto(address)
    assert closed.status == 451 and "Closed after an objection." in reader.content()
    office.schedule()
    assert len(letter_box.to("me@home.example")) == 2
