"""A corpus in Dutch, German and English over twenty years whose right answers are known, made from a fixed seed.

Sites have pages; a page is born in some year, is captured once in most years after it, and its text changes in about half of them. Words
come from a vocabulary of each language in Zipf's proportions between real function words, so that the languages can be told apart. For a
sample of words it is noted in which states they stand: who asks the index can compare every answer.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from webdepot.ports import PageText
from webdepot.url import key

SEED = 20070115
YEARS = range(2005, 2025)
SAMPLED = 60
TOP_LEVELS = {"nl": "nl", "de": "de", "en": "org"}
FUNCTION_WORDS = {
    "nl": [
        "de",
        "het",
        "een",
        "en",
        "van",
        "in",
        "is",
        "dat",
        "op",
        "te",
        "voor",
        "met",
        "zijn",
        "niet",
        "aan",
        "er",
        "om",
        "ook",
        "als",
        "dan",
        "maar",
        "bij",
        "nog",
        "naar",
        "hebben",
        "door",
        "over",
        "uit",
        "deze",
        "wordt",
    ],
    "de": [
        "der",
        "die",
        "das",
        "und",
        "ist",
        "nicht",
        "ein",
        "eine",
        "mit",
        "auf",
        "für",
        "von",
        "dem",
        "den",
        "sich",
        "auch",
        "als",
        "bei",
        "nach",
        "wird",
        "werden",
        "sind",
        "oder",
        "aus",
        "wenn",
        "noch",
        "durch",
        "über",
    ],
    "en": [
        "the",
        "of",
        "and",
        "to",
        "in",
        "is",
        "that",
        "it",
        "for",
        "was",
        "on",
        "are",
        "with",
        "as",
        "his",
        "they",
        "at",
        "be",
        "this",
        "have",
        "from",
        "or",
        "one",
        "had",
        "by",
        "but",
        "not",
        "what",
        "all",
        "were",
        "when",
        "we",
    ],
}
SYLLABLES = {
    "nl": [
        "aan",
        "be",
        "brug",
        "dijk",
        "eer",
        "ge",
        "goed",
        "haar",
        "heid",
        "huis",
        "kamp",
        "kerk",
        "laan",
        "lijk",
        "meer",
        "molen",
        "oud",
        "plein",
        "recht",
        "schaap",
        "stad",
        "straat",
        "tuin",
        "uit",
        "veld",
        "ver",
        "vaart",
        "water",
        "weg",
        "wijk",
        "zee",
        "zorg",
    ],
    "de": [
        "ab",
        "an",
        "bach",
        "berg",
        "burg",
        "dorf",
        "ein",
        "feld",
        "fluss",
        "gast",
        "ge",
        "haus",
        "heim",
        "hof",
        "kirch",
        "land",
        "licht",
        "markt",
        "platz",
        "recht",
        "schaft",
        "schul",
        "stadt",
        "stein",
        "tag",
        "ung",
        "ver",
        "wald",
        "weg",
        "werk",
        "zeit",
        "zug",
    ],
    "en": [
        "able",
        "bridge",
        "church",
        "ward",
        "court",
        "down",
        "east",
        "field",
        "ford",
        "gate",
        "green",
        "hall",
        "hill",
        "house",
        "ing",
        "land",
        "ley",
        "line",
        "mark",
        "mill",
        "more",
        "over",
        "port",
        "road",
        "ship",
        "side",
        "stone",
        "tion",
        "town",
        "view",
        "wood",
        "work",
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A run of captures of one page that show the same words."""

    url: str
    language: str
    title: str
    headings: str
    text: str
    stamps: tuple[str, ...]
    until: str
    """First capture of the next state, or all nines."""


@dataclass(slots=True)
class Truth:
    """For each sampled word, the states it stands in: (url, stamps, until)."""

    words: dict[str, list[tuple[str, tuple[str, ...], str]]] = field(default_factory=dict)


class Corpus:
    """`states` page states, on `states / 40` sites of about eight pages each. Iterating gives the states page by page."""

    def __init__(self, states: int, *, words: int = 400) -> None:
        self.count = states
        self._words = words
        chance = random.Random(SEED)
        self.vocabulary = {language: _vocabulary(language, chance) for language in SYLLABLES}
        weights = [1 / (rank + 3) for rank in range(20_000)]
        self._cumulative = list(_running(weights))
        self.sampled = {chance.choice(self.vocabulary[language][200:4000]) for language in SYLLABLES for _ in range(SAMPLED // 3)}
        self.truth = Truth(words={word: [] for word in self.sampled})

    def __iter__(self) -> Iterator[State]:
        chance = random.Random(SEED + 1)
        self.truth = Truth(words={word: [] for word in self.sampled})
        made = number = 0
        while made < self.count:
            for state in self._page(number, chance):
                self._note(state)
                yield state
                made += 1
            number += 1

    def frequent(self, language: str, count: int) -> Sequence[str]:
        return self.vocabulary[language][:count]

    def _page(self, number: int, chance: random.Random) -> Iterator[State]:
        language = ("nl", "de", "en")[number // 8 % 3]
        site = f"www.{self.vocabulary[language][number // 8 % 20_000]}{number // 8}.{TOP_LEVELS[language]}"
        name = "" if number % 8 == 0 else f"{self.vocabulary[language][chance.randrange(5000)]}/{number % 8}.html"
        born = chance.choice(YEARS[:15])
        captured = [year for year in range(born, YEARS.stop) if chance.random() < 0.8] or [born]
        runs: list[list[str]] = []
        for year in captured:
            stamp = f"{year}{chance.randint(1, 12):02d}{chance.randint(1, 28):02d}{chance.randrange(24):02d}{chance.randrange(60):02d}00"
            if runs and chance.random() < 0.5:
                runs[-1].append(stamp)
            else:
                runs.append([stamp])
        for at, run in enumerate(runs):
            yield State(
                url=f"http://{site}/{name}",
                language=language,
                title=" ".join(self._text(language, 5, chance)).capitalize(),
                headings="\n".join(" ".join(self._text(language, 4, chance)) for _ in range(3)),
                text=" ".join(self._text(language, self._words, chance)),
                stamps=tuple(run),
                until=runs[at + 1][0] if at + 1 < len(runs) else "9" * 14,
            )

    def _text(self, language: str, count: int, chance: random.Random) -> list[str]:
        vocabulary, function_words = self.vocabulary[language], FUNCTION_WORDS[language]
        content = chance.choices(vocabulary, cum_weights=self._cumulative, k=(count + 1) // 2)
        between = chance.choices(function_words, k=count // 2)
        woven = [word for pair in zip(content, between, strict=False) for word in pair]
        return woven + content[len(between) :]

    def _note(self, state: State) -> None:
        address = state.url.partition("://")[2].replace(".", "/").split("/")
        words = {*state.title.lower().split(), *state.headings.split(), *state.text.split(), *address}
        for word in self.sampled & words:
            self.truth.words[word].append((state.url, state.stamps, state.until))


def pages(state: State) -> Iterator[PageText]:
    """The captures of a state as the index takes them."""
    for stamp in state.stamps:
        yield PageText(
            key=key(state.url),
            url=state.url,
            timestamp=stamp,
            mime="text/html",
            size_bytes=len(state.text) * 2,
            collection="all-years" if stamp < "2015" else "late-years",
            title=state.title,
            headings=state.headings,
            text=state.text,
            language=state.language,
            digest=f"{state.url} {state.stamps[0]}",
        )


def html(state: State) -> bytes:
    """A page around the text: menu, header, article in paragraphs, side column, footer, as pages have them."""
    words = state.text.split(" ")
    paragraphs = "\n".join(f'<p class="body">{" ".join(words[at : at + 60])}.</p>' for at in range(0, len(words), 60))
    menu = "".join(
        f'<li class="menu-item level-{at % 3}"><a href="/section/{at}/index.html" title="Section {at}">Section {at}</a></li>\n'
        for at in range(25)
    )
    headings = "".join(f"<h2>{heading}</h2>\n" for heading in state.headings.split("\n"))
    script = "".join(f"window.dataLayer.push({{event: 'view', item: {at}, label: 'abcdefgh'}});\n" for at in range(30))
    return (
        f'<!doctype html><html lang="{state.language}"><head><meta charset="utf-8"><title>{state.title}</title>'
        f'<link rel="stylesheet" href="/style.css"><script>{script}</script></head><body class="page">\n'
        f'<nav id="menu"><ul>{menu}</ul></nav>\n<main><article><h1>{state.title}</h1>\n{headings}{paragraphs}</article></main>\n'
        f'<footer class="footer"><p>Copyright. All rights reserved.</p></footer></body></html>'
    ).encode()


def _vocabulary(language: str, chance: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < 20_000:
        found["".join(chance.choices(SYLLABLES[language], k=chance.choice((1, 2, 2, 3, 3, 4))))] = None
    return list(found)


def _running(weights: Sequence[float]) -> Iterator[float]:
    total = 0.0
    for weight in weights:
        total += weight
        yield total
