"""Words and snippets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.index.text import snippets, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café-Müller's STRAßE", ["cafe", "muller", "s", "strasse"]),
        ("a_b 1.5 x@y.nl", ["a", "b", "1", "5", "x", "y", "nl"]),
        ("日本語 text", ["日", "本", "語", "text"]),
        ("Ærø Łódź", ["aero", "lodz"]),
        ("", []),
    ],
)
def test_tokens(text, expected):
    assert words.tokens(text) == expected


@given(st.text())
def test_the_invisible_mark_comes_out_again(text):
    plain = text.replace(words.MARK, "")
    assert words.shown(words.prepared(plain)) == plain


@given(
    st.text(),
    st.lists(
        st.lists(st.text("abcé", min_size=1, max_size=3).map(words.folded), min_size=1, max_size=2),
        max_size=3,
    ),
)
def test_marks_lie_in_the_snippet_in_order_and_cover_what_was_wanted(text, phrases):
    snippet, marks = snippets.snippet(words.prepared(text), phrases)
    last = 0
    for start, end in marks:
        assert last <= start < end <= len(snippet)
        last = end
        assert words.tokens(snippet[start:end]) in [list(phrase) for phrase in phrases]
    assert len(snippet) <= snippets.SNIPPET_CHARS + 10
    assert "\n" not in snippet


def test_a_stretch_with_more_of_the_words_is_preferred():
    text = "alpha " + "filler " * 100 + "alpha and beta together " + "filler " * 100 + "beta"
    snippet, marks = snippets.snippet(text, [["alpha"], ["beta"]])
    assert [snippet[start:end] for start, end in marks] == ["alpha", "beta"]


def test_phrases_are_marked_as_a_whole_and_alone_their_words_are_not():
    snippet, marks = snippets.snippet("van de raad, de Raad van State en de raad", [["raad", "van", "state"]])
    assert [snippet[start:end] for start, end in marks] == ["Raad van State"]


def test_words_that_are_accepted_otherwise_are_marked_too():
    snippet, marks = snippets.snippet(
        "de gemeenten", [["gemeente"]], lambda word: word.startswith("gemeente")
    )
    assert [snippet[start:end] for start, end in marks] == ["gemeenten"]


def test_a_snippet_is_taken_from_running_text_rather_than_from_menus_and_footers():
    menu, footer = "Museum\nlinen · water · border\nNews\n", "\n© 2009 Museum | Hours | Folder (PDF)\n"
    prose = "In the weighing house the museum shows how linen was woven, bleached and sold."
    snippet, marks = snippets.snippet(menu + prose + footer, [["museum"]])
    assert snippet == f"… {prose} …" and [snippet[start:end] for start, end in marks] == ["museum"]
    assert snippets.snippet(menu + prose + footer, [["elsewhere"]]) == (f"… {prose} …", ())
    only_there, marks = snippets.snippet(menu + prose + footer, [["folder"]])
    assert [only_there[start:end] for start, end in marks] == ["Folder"]
    both, marks = snippets.snippet(menu + prose + footer, [["museum"], ["hours"]])
    assert [both[start:end] for start, end in marks][-1] == "Hours", "all words before running text"
