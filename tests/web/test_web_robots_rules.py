"""An archived robots.txt as access rules: what it disallows is refused, what it allows is shown, and the
newest file counts.
"""

from pathlib import Path

import pytest
from museum import EDITIONS, SITE, Warc, make_home

from webdepot.access.policy import ANYONE, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import NotFound, NotPermitted
from webdepot.services.access import lookup, rules, rules_from_robots
from webdepot.services.index import indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched

OLD = b"User-agent: *\nDisallow: /\n"
NEW = (
    b"User-agent: other\nDisallow: /\n\n"
    b"User-agent: *\nDisallow: /private/\nAllow: /private/open\nDisallow: /one.html$\nDisallow: /*/tmp\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    warc = Warc(tmp_path / "robots.warc.gz")
    warc.response(f"{SITE}/robots.txt", EDITIONS[0], OLD, mime="text/plain")
    for path in ("/", "/private/x", "/private/open/x", "/one.html", "/one.html.bak", "/a/tmp"):
        warc.response(f"{SITE}{path}", EDITIONS[0], b"<title>x</title>")
    return make_home(tmp_path / "home", warc.write())


def closed(archive: Archive) -> set[str]:
    found = set()
    for path in ("/", "/private/x", "/private/open/x", "/one.html", "/one.html.bak", "/a/tmp"):
        try:
            lookup.look_up(archive, f"{SITE}{path}", reader=ANYONE)
        except NotPermitted as error:
            assert str(error) == "By robots.txt."
            found.add(path)
    return found


def test_the_newest_robots_txt_is_applied(home: Path, tmp_path: Path):
    with Archive.open(home) as archive:
        assert closed(archive) == set(), "by itself it closes nothing"
        assert rules_from_robots.apply(archive, "www.example.org", dry_run=True).patterns == [
            (RuleAnswer.REFUSE, "www.example.org")
        ]
        assert closed(archive) == set()
        rules.add(archive, "www.example.org/a/*", answer=RuleAnswer.SHOW, reason="owner")
        rules_from_robots.apply(archive, "www.example.org", text="By robots.txt.")
        assert closed(archive) == {"/", "/private/x", "/private/open/x", "/one.html", "/one.html.bak"}, (
            "other rules stay"
        )
    newer = (
        Warc(tmp_path / "newer.warc.gz")
        .response(f"{SITE}/robots.txt", EDITIONS[3], NEW, mime="text/plain")
        .write()
    )
    with Archive.open(home) as archive:
        taken = warc_files.take_files(archive, [newer], collection="museums", watch=unwatched)
        assert taken.harvest is not None
        indexer.index_harvest(archive, taken.harvest.id)
        applied = rules_from_robots.apply(archive, SITE, text="By robots.txt.")
        assert (applied.captured, applied.left_out) == (EDITIONS[3], ["/*/tmp"])
        assert closed(archive) == {"/private/x", "/one.html"}
        assert len(rules.every(archive)) == 4, "three of the file, one of the owner"
        with pytest.raises(NotFound):
            rules_from_robots.apply(archive, "nowhere.example.net")
