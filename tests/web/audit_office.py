"""A portal whose audit trail is watched: what each form and operation leaves in it."""

import re
import time
from dataclasses import dataclass
from urllib.parse import urlencode

from museum import Answer, Served, ask

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.provenance import Event, EventFilter
from webdepot.services.admin import audit_trail
from webdepot.services.jobs import job_control
from webdepot.web.routes import PORTAL_ROUTES

ADA = "Ada"
CHANGING = {"POST", "PUT", "PATCH", "DELETE"}


@dataclass
class Office:
    served: Served
    harvests: list[str]
    open_harvest: str
    target: TargetId
    free_target: TargetId
    """One that nothing else harvests."""
    cookie: str = ""
    seen: int = 0

    def post(
        self,
        path: str,
        fields: dict[str, str] | list[tuple[str, str]] | bytes,
        kind: str = "application/x-www-form-urlencoded",
    ) -> Answer:
        body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
        return ask(
            self.served.portal + path,
            "POST",
            headers={"Cookie": self.cookie, "Content-Type": kind},
            body=body,
        )

    def new_events(self) -> list[Event]:
        """The events since the last call."""
        with Archive.open(self.served.home) as archive:
            found = [
                (number, event)
                for number, event in audit_trail.trail(archive, EventFilter(), limit=100)
                if number > self.seen
            ]
        self.seen = max([self.seen, *(number for number, _ in found)])
        return [event for _, event in found]


def route_of(path: str) -> str:
    """The row of the route table that a path belongs to."""
    for page in PORTAL_ROUTES:
        if CHANGING & set(page.methods) and re.fullmatch(
            re.sub(r"\\\{\w+(:path)?\\\}", "[^/]+", re.escape(page.path)), path.partition("?")[0]
        ):
            return page.path
    raise AssertionError(path)


class Walk:
    """Sends forms and checks what each leaves in the audit trail."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.walked: set[str] = set()
        self.asked: set[str] = set()
        """Titles of the second questions."""
        office.new_events()

    def post(self, path: str, *, by: str = ADA, **fields: str) -> Answer:
        answer = self.office.post(path, fields)
        assert answer.status == 303, (
            path,
            fields,
            answer.status,
            re.findall(r'class="notice[^>]*>(.*?)<', answer.text),
        )
        self.look(path, by)
        return answer

    def post_final(self, path: str, **fields: str) -> None:
        """Something that cannot be undone is done only after a second question, which changes nothing."""
        self.settle()
        question = self.office.post(path, fields)
        assert question.status == 200 and 'name="confirmed" value="yes"' in question.text, (path, fields)
        assert not self.office.new_events(), (path, "changed before the question was answered")
        self.asked |= set(re.findall(r"<h1>(.*?)</h1>", question.text))
        assert f'<form method="post" action="{path}">' in question.text
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', question.text)
        assert dict(hidden) == {**fields, "confirmed": "yes"}
        self.post(path, **dict(hidden))

    def settle(self) -> None:
        """Wait for the jobs that earlier steps started, because each leaves events when it ends."""
        with self.office.served.archive() as archive:
            for job in job_control.newest(archive):
                assert (
                    job.needs == "uploads/none" or not job_control.wait(archive, job, at_most_s=60).is_open
                ), job
        self.office.new_events()

    def look(self, path: str, by: str = ADA) -> None:
        """At least one event by that person has the values before and after."""
        deadline, events = time.monotonic() + 20, list[Event]()
        while (
            not (told := [event for event in events if is_told(event) and by in event.agent])
            and time.monotonic() < deadline
        ):
            events += self.office.new_events()
            time.sleep(0 if told else 0.02)
        assert told, (path, [(event.agent, event.action, event.detail) for event in events])
        self.walked.add(route_of(path))


def is_told(event: Event) -> bool:
    before, after = event.detail.get("before"), event.detail.get("after")
    return isinstance(before, dict) and isinstance(after, dict) and before != after
