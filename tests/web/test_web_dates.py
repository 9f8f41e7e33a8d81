"""Dates that readers ask for: typed in their own form, named beside the date that is shown, refused with a clear
message."""

import pytest
from museum import EDITIONS, SITE, Served, ask


def follow(served: Served, path: str) -> tuple[str, str, str]:
    """Path, page and cookies of an address on the frame, past one redirect."""
    answer = ask(served.frame + path)
    cookie = (answer.headers["Set-Cookie"] or "").partition(";")[0]
    where = answer.headers["Location"]
    page = ask(served.frame + where, headers={"Cookie": cookie} if cookie else {})
    return where, page.text, cookie


@pytest.mark.parametrize(
    "asked, shown, words",
    [
        (
            "20100101",
            EDITIONS[0],
            "You asked for 1 January 2010. The closest version is from 12 March 2009 (earlier)",
        ),
        ("201205", EDITIONS[1], "You asked for May 2012. The closest version is from 1 June 2012 (later)"),
        ("2018", EDITIONS[3], "You asked for 2018. The closest version is from 11 September 2019 (later)"),
        ("2012", EDITIONS[1], ""),
        ("20120601", EDITIONS[1], ""),
        ("20120601235959", EDITIONS[2], ""),
    ],
)
def test_the_date_asked_for_and_the_date_shown_are_both_said(
    served: Served, asked: str, shown: str, words: str
):
    where, page, _ = follow(served, f"/all/{asked}/{SITE}/")
    assert where == f"/all/{shown}/{SITE}/"
    assert words in page if words else "You asked for" not in page


def test_the_words_are_said_once_and_for_that_version_only(served: Served):
    _, page, cookie = follow(served, f"/all/20100101/{SITE}/")
    assert "You asked for" in page
    other = ask(f"{served.frame}/all/{EDITIONS[2]}/{SITE}/", headers={"Cookie": cookie})
    assert "You asked for" not in other.text
    assert "Max-Age=0" in other.headers["Set-Cookie"]
    name = cookie.partition("=")[0]
    for value in ("x", "-", f"99-{EDITIONS[0]}", f"<b>-{EDITIONS[0]}"):
        answer = ask(f"{served.frame}/all/{EDITIONS[0]}/{SITE}/", headers={"Cookie": f"{name}={value}"})
        assert answer.status == 200 and "You asked for" not in answer.text


def test_the_portal_passes_the_date_on_to_the_frame(served: Served):
    answer = ask(f"{served.portal}/all/2010/{SITE}/")
    assert answer.headers["Location"] == f"{served.frame}/all/2010/{SITE}/"


@pytest.mark.parametrize(
    "typed",
    [
        *("1.1.2010", "1-1-2010", "2010-01-01", "01%2F01%2F2010"),
        *("1+January+2010", "1+januari+2010", "1.+Januar+2010", "Jan+1,+2010", "1.+Jan.+2010"),
    ],
)
def test_the_box_goes_to_a_date_typed_in_any_manner(served: Served, typed: str):
    for origin in (served.portal, served.frame):
        answer = ask(f"{origin}/-/go?collection=all&url={SITE}/&date={typed}")
        assert answer.headers["Location"] == f"/all/20100101/{SITE}/"
    assert 'action="/-/go"' in ask(f"{served.frame}/all/{EDITIONS[0]}/{SITE}/").text


def test_a_wrong_date_is_refused_with_the_input_kept(served: Served):
    answer = ask(f"{served.frame}/-/go?collection=all&url={SITE}/&date=31-2-2010")
    for typed in ("31+February+2010", "1+Jantober+2010", "1+May+1,+2010"):
        assert ask(f"{served.frame}/-/go?collection=all&url={SITE}/&date={typed}").status == 400
    assert answer.status == 400
    assert "“31-2-2010” is not a date" in answer.text and 'value="31-2-2010"' in answer.text
    assert ask(f"{served.portal}/-/go?collection=%2F&url={SITE}/&date=2010").status == 400
    assert ask(f"{served.portal}/-/go?url=&date=2010").status == 400


@pytest.mark.parametrize("field", ["from", "to", "as_of"])
def test_the_search_form_takes_dates_and_refuses_what_is_none(served: Served, field: str):
    assert ask(f"{served.portal}/search?q=clock&{field}=11.9.2019").status == 200
    answer = ask(f"{served.portal}/search?q=clock&{field}=abc")
    assert answer.status == 400 and "“abc” is not a date" in answer.text
    assert 'value="clock"' in answer.text and 'value="abc"' in answer.text
    assert ask(f"{served.portal}/api/search?q=clock&{field}=abc").status == 400


def test_a_period_of_days_narrows_the_search(served: Served):
    assert 'value="2012-06-01"' in ask(f"{served.portal}/search?q=edition&from=1-6-2012&to=1-6-2012").text
    assert "page found" in ask(f"{served.portal}/search?q=edition&from=1-6-2012&to=1-6-2012").text
    assert "No pages match" in ask(f"{served.portal}/search?q=edition&from=2-6-2012&to=3-6-2012").text


def test_a_page_of_results_past_the_last_says_so(served: Served):
    text = ask(f"{served.portal}/search?q=clock&page=999").text
    assert "These results do not go that far" in text and "No page contains" not in text


def test_an_unclosed_quotation_mark_is_closed_at_the_end(served: Served):
    answer = ask(f"{served.portal}/search?q=%22every%20clock%20in")
    assert answer.status == 200 and "page found" in answer.text


def test_downloads_are_named_by_what_they_contain(served: Served):
    answer = ask(f"{served.portal}/search/export?q=Caf%C3%A9%20clock&from=2012&form=csv")
    name = answer.headers["Content-Disposition"]
    assert name.startswith('attachment; filename="search-cafe-clock-after-2012-20') and name.endswith('.csv"')
