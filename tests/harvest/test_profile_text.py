"""Setting a key in the text of a profile: the text stays valid TOML, and nothing else in it changes."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import InputError
from webdepot.harvest.profile_text import with_key

LINES = (
    "",
    "# fetch = 'in a comment' [x",
    'scope = "host"  # [not a table]',
    'note = """\nfetch = "in a string"\n[profiles.no]\n# no comment "" \\""""""',
    "about = '''\nfetch = 'x' \\'''",
    "reject = [\n  'a]b', # ] fetch = 1\n  \"c#d\",\n]",
    "limits = {pages = 1, bytes = [1, {x = '}'}]}",
    "a.b.fetch = 1",
    "'quoted key' = 1_000",
    "when = 2024-05-01T00:00:00Z",
    "ratio = nan",
)
WRITTEN = (
    "",
    "fetch = 'plain'",
    '  "fetch"="plain" # why [',
    'fetch = """\nplain"""',
    "fetch = [\n'plain', # ]\n]",
)
TABLES = ("", "[hosts.'a.example']\nfetch = 'plain'", "[[rules]]\nreject = 'x'\n[[rules]]\nfetch = 'y' # z")


def flat(value, path=""):
    """Every value with its path, as text: `nan` differs from itself."""
    if isinstance(value, dict):
        return [each for name, part in value.items() for each in flat(part, f"{path}/{name}")]
    return [f"{path}={value!r}"]


@given(
    before=st.lists(st.sampled_from(LINES), unique=True, max_size=4),
    written=st.sampled_from(WRITTEN),
    after=st.lists(st.sampled_from(LINES), unique=True, max_size=4),
    table=st.sampled_from(TABLES),
    header=st.sampled_from(["", "[profiles.a]", "# first\n[ profiles . 'a' ] # [profiles.b]"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    is_ended=st.booleans(),
    value=st.text(st.characters(codec="utf-8"), max_size=8),
)
def test_only_the_key_changes(before, written, after, table, header, line_end, is_ended, value):
    rest = [line for line in after if line not in before]
    if header:
        table = table.replace("[hosts", "[profiles.a.hosts").replace("[[rules", "[[profiles.a.rules")
    parts = [part for part in (header, *before, written, *rest, table) if part]
    text = "\n".join(parts).replace("\n", line_end) + (line_end if is_ended else "")
    tree = tomllib.loads(text)
    (tree["profiles"]["a"] if header else tree)["fetch"] = value
    changed = with_key(text, "fetch", value)
    assert repr(sorted(flat(tomllib.loads(changed)))) == repr(sorted(flat(tree)))
    for part in parts:
        if part != written:
            assert part.replace("\n", line_end) in changed
    assert changed.count("\n") - changed.count("\r\n") == (0 if line_end == "\r\n" else changed.count("\n"))
    assert with_key(changed, "fetch", value) == changed


def test_a_comment_after_the_value_stays():
    assert with_key("fetch = 'plain'  # as agreed\n", "fetch", "browser") == 'fetch = "browser" # as agreed\n'


@pytest.mark.parametrize(
    "text", ["fetch.a = 1\nfetch.b = 2\n", "[fetch]\na = 1\n", "profiles = {a = {x = 1}}\n"]
)
def test_a_key_that_cannot_be_changed_is_reported(text):
    with pytest.raises(InputError, match="Write it yourself: fetch = "):
        with_key(text, "fetch", "browser")


def test_text_that_is_not_valid_stays_for_the_reader_to_report():
    assert with_key("scope = [\n", "fetch", "browser") == "scope = [\n"
