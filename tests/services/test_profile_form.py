"""Profiles in a form: what is not changed stays as it was written, to the byte."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdepot.archive import Archive
from webdepot.errors import ConfigError
from webdepot.harvest import profile
from webdepot.services.admin import setup
from webdepot.services.harvest import profile_form

LINES = (
    'description = "Museums" # a comment',
    "# only a comment",
    'scope = "domain"',
    "delay_s = 2",
    "limit_pages = 5_000",
    "guess = true",
    "behaviours = []",
    'reject = [\n  "/a/", # why\n  "b c",\n]',
    "include = []",
    'robots = "ignore"\nrobots_reason = "the law"',
)
TABLES = (
    '[[rules]]\nreject = "extension"\nof = "avi"',
    '[[rules]]\naccept = "hops"\nover = 3 # so far\nunless = true',
    '[hosts."a.example"]\ndelay_s = 9',
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    home: Path = tmp_path_factory.mktemp("profiles") / "home"
    setup.create(home)
    with Archive.open(home) as archive:
        yield archive


def sent_by(form: profile_form.ProfileForm) -> dict[str, str]:
    """What a browser sends for a form in which nothing was changed."""
    sent = {key: value.replace("\n", "\r\n") for key, value in form.fields.items() if key != "behaviours"}
    sent |= {f"behaviours-{name}": "1" for name in form.fields["behaviours"].split()}
    for number, row in enumerate(form.rules):
        sent |= {f"rule-{number}-answer": row.answer, f"rule-{number}-condition": row.condition}
        sent |= {f"rule-{number}-value": row.value} | ({f"rule-{number}-unless": "1"} if row.unless else {})
    return sent


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.sampled_from(LINES), unique=True),
    tables=st.lists(st.sampled_from(TABLES), unique=True),
    is_named=st.booleans(),
)
def test_a_form_without_a_change_leaves_every_byte(archive: Archive, lines, tables, is_named):
    if is_named:
        tables = [table.replace("[hosts", "[profiles.a.hosts") for table in tables]
        tables = [table.replace("[[rules", "[[profiles.a.rules") for table in tables]
        lines = ["[profiles.a]", *lines]
    text = "\n".join([*lines, *tables, ""])
    form = profile_form.of_text(archive, "a", text)
    assert profile_form.read(archive, "a", text, sent_by(form))[0] == text
    # One change changes one thing.
    before = profile.from_text("a", text, origin="")
    changed, again = profile_form.read(
        archive, "a", text, sent_by(form) | {"limit_bytes": "77", "delay_s": ""}
    )
    after = profile.from_text("a", changed, origin="")
    assert not again.errors
    expected = {**before.values, "limit_bytes": 77}
    expected.pop("delay_s", None)
    assert after.values == expected and (after.rules, after.hosts) == (before.rules, before.hosts)
    assert changed.count("#") == text.count("#"), "comments stay"


def test_rules_are_added_changed_and_removed(archive: Archive):
    text = '# ours\n[[rules]]\nreject = "extension"\nof = ["avi"]\n\n[hosts."a.example"]\ndelay_s = 9\n'
    sent = sent_by(profile_form.of_text(archive, "a", text))
    sent |= {"rule-1-answer": "accept", "rule-1-condition": "hops", "rule-1-value": "3"}
    more, _ = profile_form.read(archive, "a", text, sent)
    assert [str(rule) for rule in profile.from_text("a", more, origin="").rules] == [
        "reject extension avi",
        "accept hops over 3",
    ]
    assert more.startswith("# ours\n") and '[hosts."a.example"]' in more
    none, _ = profile_form.read(archive, "a", more, sent | {"rule-0-answer": "", "rule-1-answer": ""})
    assert none == '# ours\n\n[hosts."a.example"]\ndelay_s = 9\n'
    wrong, form = profile_form.read(archive, "a", text, sent | {"rule-1-value": "far"})
    assert wrong == text and list(form.errors) == ["rule-1"] and form.rules[1].value == "far"


def test_rules_with_comments_are_only_shown(archive: Archive):
    text = '[[rules]] # films\nreject = "extension"\nof = ["avi"]\n'
    form = profile_form.of_text(archive, "a", text)
    assert not form.can_have_rules
    changed, _ = profile_form.read(archive, "a", text, {"scope": "domain", "behaviours-default": "1"})
    assert changed == f'scope = "domain"\n{text}'


def test_each_wrong_field_is_named(archive: Archive):
    sent = {"limit_pages": "-1", "delay_s": "soon", "reject": "(", "include": "nonsense", "robots": "ignore"}
    text, form = profile_form.read(archive, "a", "", sent | {"page_time_s": "0", "behaviours-default": "1"})
    assert text == "" and form.fields["delay_s"] == "soon"
    assert set(form.errors) == {*sent, "page_time_s", "robots_reason"} - {"robots"}
    with pytest.raises(ConfigError, match="Did you mean"):
        profile_form.of_text(archive, "a", 'scop = "host"')
