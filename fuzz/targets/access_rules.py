"""Access rules of pywb (`.aclj`)."""

from webdepot.access import aclj
from webdepot.access.policy import AccessPoint
from webdepot.times import from_iso

TOKENS = (
    b"org,example)/ - {",
    b'"access": "block"',
    b'"access": "exclude"',
    b'"access": "allow", "user": "staff"',
    b"### - {",
    b'"before": "2019"',
    b'"after": "20190304"',
    b'"newer": {"years": 1}',
    b'"older": ',
    b"*, - ",
    b"99999999",
    b"1e999",
    b"}\n",
    b'"\\ud800"',
)


def one_input(data: bytes) -> None:
    read = aclj.read(data, {"staff": AccessPoint.STAFF}, now=from_iso("2020-01-01T00:00:00Z"))
    for rule in read.rules:
        assert len(rule.captured_from) == len(rule.captured_to) == 14
    for _, problem in read.bad:
        problem.encode()
