"""Pages without content before their scripts run, and the values of profiles for fetching."""

import pytest

from webdepot.errors import ConfigError
from webdepot.harvest import profile, profile_text
from webdepot.harvest.links.empty_pages import count_letters, is_empty

WORDS = "<p>" + "A museum in the old harbour shows ships and maps. " * 20 + "</p>"


@pytest.mark.parametrize(
    "html",
    [
        "<html><head><title>A long title, not of the page</title></head>"
        "<body><div id=root></div><script src=a.js></script>",
        "<app-root></app-root><script type=module src=main.js></script>",
        "<noscript>You need to enable JavaScript to run this app.</noscript>"
        "<div id='app'></div><script src=a.js></script>",
        "<body><script>" + "var a = 'many words in a script'; " * 100 + "</script>",
        "<div id=__next><p>"
        + "Loading the page, please wait. " * 12
        + "</p></div><script src=a.js></script>",
        "<style>" + "p {color: red} " * 100 + "</style><script src=a.js></script><p>Loading</p>",
    ],
)
def test_filled_by_scripts(html: str):
    assert is_empty(html)


@pytest.mark.parametrize(
    "html",
    [WORDS, WORDS + "<script src=a.js></script>", "<p>Short, but whole.</p>", "", "<div id=root>" + WORDS],
)
def test_whole_without(html: str):
    assert not is_empty(html)


def test_letters_are_those_that_are_shown():
    assert (
        count_letters(
            "<head><title>no</title></head><body>ab&nbsp;c<!-- no --><b>d</b><script>no</script>", enough=99
        )
        == 4
    )


def test_a_key_is_set_in_the_text_of_a_profile():
    rules = '[[rules]]\nreject = "extension"\nof = ["avi"]\n'
    for text in (
        f'scope = "host"\n\n{rules}',
        f'fetch = "plain"\nscope = "host"\n\n{rules}',
        '[profiles.a]\nscope = "host"\n',
        rules,
    ):
        made = profile.from_text("a", profile_text.with_key(text, "fetch", "browser"), origin="form")
        assert made.values["fetch"] == "browser"
        assert len(made.rules) == text.count("[[rules]]")


def test_values_of_profiles_are_checked():
    given = {"fetch": "when-empty", "screenshots": "pages", "behaviours": ["scroll"], "page_time_s": 20}
    given |= {"hosts": {"a.example": {"fetch": "plain"}}}
    assert profile.from_tree("a", given, origin="test").hosts["a.example"]["fetch"] == "plain"
    for wrong in (
        {"fetch": "chrome"},
        {"behaviours": ["dance"]},
        {"screenshots": "all"},
        {"hosts": {"a.example": {"fetch": "never"}}},
    ):
        with pytest.raises(ConfigError):
            profile.from_tree("a", wrong, origin="test")
