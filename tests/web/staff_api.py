"""A portal with a person and a key for each role, as programs use it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from api_description import check, check_answer
from museum import PASSWORD, Answer, Served, ask, serving

from small_sites import cleared
from webdepot.accounts import accounts, api_keys
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.services.admin import setup

SETTINGS = "[harvest]\nallow_private = true\n"


@dataclass
class Api:
    served: Served
    site: str
    keys: dict[Role, str]
    document: dict[str, Any]
    targets: list[TargetId]
    harvests: list[str] = field(default_factory=list)
    """One for each target, if there are any; all wait for review."""

    def send(self, method: str, path: str, sent: object = None, *, role: Role | None = None, **headers: str):
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if role is not None:
            given["Authorization"] = f"Bearer {self.keys[role]}"
        body = None
        if sent is not None:
            body = json.dumps(sent).encode()
            given.setdefault("Content-Type", "application/json")
        return ask(self.served.portal + path, method, headers=given, body=body)

    def call(self, method: str, template: str, sent: object = None, *, role: Role, query: str = "", **parts):
        """The content of an answer, checked against the description."""
        answer = self.send(method, template.format(**parts) + query, sent, role=role)
        return answer.status, check_answer(answer, method, template, self.document)

    def wait(self, template: str, state: str, **parts: object) -> Any:
        """What is at this path, as soon as it is in this state."""
        for _ in range(600):
            _, seen = self.call("GET", template, role=Role.CURATOR, **parts)
            if seen["state"] == state:
                return seen
            time.sleep(0.1)
        raise AssertionError(seen)


def make_keys(archive: Archive) -> dict[Role, str]:
    """A person and a key for each role."""
    now, keys = datetime.now(UTC), {}
    for role in Role:
        accounts.add(archive.database, role.value, PASSWORD, [role], now)
        _, keys[role] = api_keys.make_key(archive.database, role.value, "test", [role], now)
    return keys


@contextmanager
def api_of(home: Path, site: str, *, settings: str = "") -> Iterator[Api]:
    """An archive with a cleared target, and nothing harvested."""
    setup.create(home, settings=SETTINGS + settings)
    with Archive.open(home, agent="Ada") as archive:
        keys, targets = make_keys(archive), [cleared(archive, f"{site}/one")]
    with serving(home) as served:
        document = json.loads(ask(f"{served.portal}/api/openapi.json").text)
        yield Api(served, site, keys, document, targets)


def problem_of(answer: Answer, status: int, code: str, api: Api) -> dict[str, Any]:
    assert answer.status == status, answer.text[:300]
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(answer.text)
    check(problem, {"$ref": "#/components/schemas/Problem"}, api.document)
    assert (problem["status"], problem["code"]) == (status, code) and problem["detail"]
    return problem
