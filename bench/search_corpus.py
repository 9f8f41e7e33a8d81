"""A corpus in Dutch, German and English over twenty years with known answers, generated from a fixed seed.

Sites have pages. A page is created in some year, is captured once in most years after it, and its text
changes in about half of them. Words come from a vocabulary of each language with a Zipf distribution, between
real function words, so that the language can be detected. For a sample of words, the states that contain them
are known, so that every result of the index can be checked.

The words are in `search_vocabulary`; `search_html` writes the pages as HTML.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.search_vocabulary import FUNCTION_WORDS, SYLLABLES

from webdepot.ports.search import PageText
from webdepot.url import key

SEED = 20070115
YEARS = range(2005, 2025)
SAMPLED = 60
TOP_LEVELS = {"nl": "nl", "de": "de", "en": "org"}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A series of captures of one page with the same text."""

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
    """For each sampled word, the states with it: (url, stamps, until)."""

    words: dict[str, list[tuple[str, tuple[str, ...], str]]] = field(default_factory=dict)


class Corpus:
    """`states` page states, on `states / 40` sites of about eight pages each. Iteration yields the states
    page by page.
    """

    def __init__(self, states: int, *, words: int = 800) -> None:
        self.count = states
        self._words = words
        chance = random.Random(SEED)
        self.vocabulary = {language: _vocabulary(language, chance) for language in SYLLABLES}
        weights = [1 / (rank + 3) for rank in range(20_000)]
        self._cumulative = list(_running(weights))
        self.sampled = {
            chance.choice(self.vocabulary[language][200:4000])
            for language in SYLLABLES
            for _ in range(SAMPLED // 3)
        }
        self.truth = Truth(words={word: [] for word in self.sampled})

    def __iter__(self) -> Iterator[State]:
        chance = random.Random(SEED + 1)
        self.truth = Truth(words={word: [] for word in self.sampled})
        states_made = number = 0
        while states_made < self.count:
            for state in self._page(number, chance):
                self._note(state)
                yield state
                states_made += 1
            number += 1

    def frequent(self, language: str, count: int) -> Sequence[str]:
        return self.vocabulary[language][:count]

    def _page(self, number: int, chance: random.Random) -> Iterator[State]:
        language = ("nl", "de", "en")[number // 8 % 3]
        site = f"www.{self.vocabulary[language][number // 8 % 20_000]}{number // 8}.{TOP_LEVELS[language]}"
        name = (
            ""
            if number % 8 == 0
            else f"{self.vocabulary[language][chance.randrange(5000)]}/{number % 8}.html"
        )
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
                text=" ".join(self._text(language, _length(self._words, chance), chance)),
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
    """The captures of a state in the form the index accepts."""
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


def _vocabulary(language: str, chance: random.Random) -> list[str]:
    vocabulary: dict[str, None] = {}
    while len(vocabulary) < 20_000:
        vocabulary["".join(chance.choices(SYLLABLES[language], k=chance.choice((1, 2, 2, 3, 3, 4))))] = None
    return list(vocabulary)


def _length(mean: int, chance: random.Random) -> int:
    """Most pages are short and some are long."""
    return min(max(int(mean * chance.lognormvariate(-0.245, 0.7)), 30), mean * 12)


def _running(weights: Sequence[float]) -> Iterator[float]:
    total = 0.0
    for weight in weights:
        total += weight
        yield total
