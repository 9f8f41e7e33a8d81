"""Words as they are indexed: how texts are split, folded and reduced to stems, for all text indexes."""

from functools import lru_cache

import tantivy
from tantivy import Filter, Tokenizer

STEMMERS = {
    "nl": "dutch",
    "de": "german",
    "en": "english",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "da": "danish",
    "sv": "swedish",
}
_LONGEST_TOKEN = 100
_MOST_STEMS = 50_000


def analysers() -> dict[str, tantivy.TextAnalyzer]:
    """Analysers by name: `exact` and `stemmed` of the schema, and `stem_nl`, …, which find stems."""

    def plain() -> tantivy.TextAnalyzerBuilder:
        return (
            tantivy.TextAnalyzerBuilder(Tokenizer.simple())
            .filter(Filter.remove_long(_LONGEST_TOKEN))
            .filter(Filter.lowercase())
        )

    stemmers = {
        f"stem_{language}": plain().filter(Filter.stemmer(name)).build()
        for language, name in STEMMERS.items()
    }
    stemmed = tantivy.TextAnalyzerBuilder(Tokenizer.whitespace()).build()
    return {"exact": plain().filter(Filter.ascii_fold()).build(), "stemmed": stemmed, **stemmers}


class Stems(dict[str, str]):
    """Stems of words as they appear between two spaces, each computed once: stemming a whole text takes twice
    as long as indexing it.
    """

    def __init__(self, analyser: tantivy.TextAnalyzer) -> None:
        super().__init__()
        self._analyser = analyser

    def of(self, text: str) -> str:
        """The stems of a text with spaces between them."""
        if len(self) > _MOST_STEMS:
            self.clear()
        return " ".join(map(self.__getitem__, text.lower().split()))

    def __missing__(self, word: str) -> str:
        stems = " ".join(self._analyser.analyze(word))
        if len(word) <= _LONGEST_TOKEN:
            self[word] = stems
        return stems


@lru_cache(maxsize=len(STEMMERS))
def stems(language: str) -> Stems:
    return Stems(analysers()[f"stem_{language}"])
