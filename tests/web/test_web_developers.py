"""The page for programmers: its examples work, in every language, and reveal nothing closed."""

import html
import re

import pytest
from museum import SITE, Served, ask

EXAMPLE = re.compile(r"<code>curl (?:-i -H '([^']*)' )?'(http[^']*)'</code>")


def examples(served: Served) -> list[tuple[str, str]]:
    page = ask(f"{served.portal}/developers")
    assert page.status == 200
    return EXAMPLE.findall(html.unescape(page.text))


def test_every_example_works_against_this_archive(served: Served):
    found = examples(served)
    assert len(found) >= 19
    for header, url in found:
        name, _, value = header.partition(": ")
        answer = ask(url, headers={name: value} if name else {})
        assert answer.status == (302 if "timegate" in url else 200), (url, answer.text[:300])
        assert answer.body if answer.status == 200 else SITE in answer.headers["Location"]
        assert '"error"' not in answer.body[:200].decode("latin-1"), url


@pytest.mark.parametrize(
    "code, words", [("en", "For developers"), ("nl", "Voor ontwikkelaars"), ("de", "Für Entwickler")]
)
def test_the_page_is_linked_from_the_footer_in_every_language(served: Served, code: str, words: str):
    text = ask(f"{served.portal}/about?lang={code}").text
    assert f'/developers">{words}' in text
    assert words in ask(f"{served.portal}/developers?lang={code}").text
