"""The query language: what is accepted, what is refused and at which position, and that nothing crashes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webdepot.access import search_query
from webdepot.errors import InputError
from webdepot.ports.search import TextQuery
from webdepot.times import LATEST, Period, from_timestamp, period_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gemeente archief", TextQuery(words=("gemeente", "archief"))),
        ('"raad van state" zaak', TextQuery(words=("zaak",), phrases=("raad van state",))),
        ("“raad van state”", TextQuery(phrases=("raad van state",))),
        ('a -b -"c d"', TextQuery(words=("a",), excluded=("b", "c d"))),
        ("a - b", TextQuery(words=("a", "b"))),
        ("a-b", TextQuery(words=("a-b",))),
        (
            'fiets OR rijwiel OR "twee wiel" x',
            TextQuery(words=("x",), alternatives=(("fiets", "rijwiel", "twee wiel"),)),
        ),
        ("a or b", TextQuery(words=("a", "or", "b"))),
        ('"OR"', TextQuery(phrases=("OR",))),
        ("a OR b c OR d", TextQuery(alternatives=(("a", "b"), ("c", "d")))),
        ("site:www.KB.nl/nieuws site:*.dnb.de x", TextQuery(words=("x",), sites=("www.kb.nl", "dnb.de"))),
        ("site:kb.nl", TextQuery(sites=("kb.nl",))),
        ("SITE:bücher.de x", TextQuery(words=("x",), sites=("xn--bcher-kva.de",))),
        ("type:pdf x", TextQuery(words=("x",), mimes=("application/pdf",))),
        ("type:text/css x", TextQuery(words=("x",), mimes=("text/css",))),
        ("lang:NL x", TextQuery(words=("x",), languages=("nl",))),
        (
            "x after:2001-03 before:2005",
            TextQuery(words=("x",), period=Period(from_timestamp("200103"), period_of("2005").end)),
        ),
        ("x after:20010304", TextQuery(words=("x",), period=Period(from_timestamp("20010304"), LATEST))),
        ("x as-of:2010-03-01", TextQuery(words=("x",), as_of=period_of("20100301").end)),
        ("Betreff: Wahl", TextQuery(words=("Betreff:", "Wahl"))),
        ("http://x.org/ y", TextQuery(words=("http://x.org/", "y"))),
        ('foo"bar baz"', TextQuery(words=("foo",), phrases=("bar baz",))),
        ("C++ !!! c#", TextQuery(words=("C++", "c#"))),
        ('site:"kb.nl" x', TextQuery(words=("x",), sites=("kb.nl",))),
        ("\u6f22\u5b57", TextQuery(words=("\u6f22\u5b57",))),
    ],
)
def test_what_is_understood(text, expected):
    assert search_query.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("OR a", "OR needs a word", 0),
        ("a OR", "OR needs a word", 2),
        ("a OR OR b", "OR needs a word", 2),
        ("a OR -b", "cannot be an alternative", 5),
        ("x site: y", "A value must follow site:", 2),
        ("sites:x y", "Did you mean site:", 0),
        ("x befor:2010", "Did you mean before:", 2),
        ("x before:yesterday", "is not a date", 2),
        ("x before:2010-13", "is not a date", 2),
        ("x before:2010-02-30", "is not a date", 2),
        ("x after:2010 before:2009", "ends before it begins", 13),
        ("x type:spreadsheet", "Unknown type", 2),
        ("x lang:dutch", "is not a language code", 2),
        ("x -site:kb.nl", "cannot be excluded", 2),
        ("x site:[", "is not a host", 2),
    ],
)
def test_an_error_shows_its_place(text, message, place):
    with pytest.raises(InputError, match=message) as caught:
        search_query.parse(text)
    shown, mark = str(caught.value).splitlines()[-2:]
    assert shown == f"  {text}"
    assert mark.index("^") - 2 == place


@pytest.mark.parametrize("text", ["", "  ", "!!!", '""', "-x", '-"a b"'])
def test_a_query_needs_something_to_look_for(text):
    with pytest.raises(InputError, match="Enter"):
        search_query.parse(text)


def test_a_place_far_to_the_right_is_shown_with_the_text_around_it():
    with pytest.raises(InputError) as caught:
        search_query.parse("word " * 20 + "before:never")
    shown, mark = str(caught.value).splitlines()[-2:]
    assert shown[mark.index("^") :].startswith("before:")


def test_a_phrase_that_is_not_closed_ends_with_the_query():
    assert search_query.parse('x "open door').phrases == ("open door",)
    assert search_query.parse('x -"open door').excluded == ("open door",)
    assert search_query.parse('15" screen').words == ("15",)


def test_dates_may_be_written_as_readers_do():
    assert search_query.parse("x after:31.12.2009").period == search_query.parse("x after:2009-12-31").period


def test_queries_are_bounded():
    with pytest.raises(InputError, match="longer than"):
        search_query.parse("x" * 10_001)
    with pytest.raises(InputError, match="at most 64 words"):
        search_query.parse("x " * 100)


@settings(max_examples=500)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from(
                ['"', "-", "OR", " ", "site:", "before:", "2010", "a", "type:", ":", "“", "kb.nl", "[", "\\"]
            ),
            max_size=12,
        ).map("".join),
    )
)
@example('-"')
@example("a:" * 1000)
@example('"' * 999)
def test_any_text_is_a_query_or_an_input_error(text):
    try:
        found = search_query.parse(text)
    except InputError as error:
        assert str(error)
    else:
        assert (
            found.words
            or found.phrases
            or found.alternatives
            or found.sites
            or found.mimes
            or found.languages
            or found.period
            or found.as_of
        )
    assert search_query.is_address(text) in (True, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org", True),
        (" www.kb.nl ", True),
        ("http://intern", True),
        ("kb.nl/nieuws?x=1", True),
        ("https://kb.nl/a b", False),
        ("bücher.de", True),
        ("localhost:8080/x", True),
        ("192.168.1.1", True),
        ("[::1]:80", True),
        ("index.html", False),
        ("node.js", False),
        ("e.g.", False),
        ("1.5", False),
        ("gemeente", False),
        ("gemeente archief", False),
        ('"kb.nl"', False),
        ("mailto:x@kb.nl", False),
        ("foo.nosuchtld", False),
        ("", False),
    ],
)
def test_addresses_are_recognised(text, expected):
    assert search_query.is_address(text) is expected
