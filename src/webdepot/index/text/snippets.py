"""Snippets: the part of a text that shows where the wanted words occur. Words are compared as in `words`."""

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice

from webdepot.index.text.words import folded, shown

SNIPPET_CHARS = 240
_SEARCHED_CHARS = 200_000
# Two letters that may be written as one, or a single letter.
_FOLDED = re.compile(r"ss|ae|oe|th|ij|.", re.DOTALL)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MOST_OCCURRENCES = 60
_PROSE_CHARS = 45
_MOST_LINES_BEFORE_PROSE = 200
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|[。！？]")
_FOOTER = re.compile(r"^\W*(?:©|\(c\)|copyright\b)|(?: [|·•»] [^|·•»]*){2}", re.IGNORECASE)
# Letters that fold to two, combining accents, and everything beyond Latin that may not be one letter.
_NOT_IN_PLACE = re.compile(
    "[ßæœþĳŉǰ\u0300-\u036f\u1e96-\u1e9f\ufb00-\ufb06\u2c60-\u2c7f\ua720-\ua7ff\u0370-\u1dff\u1f00-\u1fff]"
    "|[\u2e80-\U0010ffff]"
)
Range = tuple[int, int]


def snippet(
    text: str, phrases: Sequence[Sequence[str]], is_match: Callable[[str], bool] | None = None
) -> tuple[str, tuple[Range, ...]]:
    """The part of a prepared text with most of the wanted phrases, and their ranges in that part.

    `phrases` are sequences of folded words (a single word is a sequence of one). If none of them occurs,
    words are taken instead that `is_match` accepts (the same stem) and that begin like one of them.
    """
    searched = _SearchedText(text[:_SEARCHED_CHARS])
    occurrences = list(islice(_occurrences(searched, phrases), _MOST_OCCURRENCES))
    if not occurrences and is_match is not None:
        starts = tuple(sorted({phrase[0][:2] for phrase in phrases if len(phrase) == 1}))
        accepted = lru_cache(maxsize=None)(is_match)
        places = _beginning(starts).finditer(searched.folded or searched.lowered) if starts else iter(())
        words = (
            (word.start(), word.end(), 0)
            for word in places
            if accepted(searched.text[word.start() : word.end()])
        )
        occurrences = list(islice(words, _MOST_OCCURRENCES))
    start, end = _best_window(text, occurrences)
    cut = text[start:end]
    marks = [
        (first - start, last - start) for first, last, _ in occurrences if start <= first and last <= end
    ]
    return _cleaned(cut, marks, leading=start > 0, trailing=end < len(text))


class _SearchedText:
    """A text, and the forms in which it is compared: each is computed once, and only if a simpler one was not
    enough.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = text.lower()

    @cached_property
    def folded(self) -> str | None:
        """Without case and accents, character by character; None if a letter folds to two or there is a
        combining accent.
        """
        if self.lowered.isascii():
            return self.lowered
        if len(self.lowered) != len(self.text):
            return None
        letters, text = set(_BEYOND_ASCII.findall(self.lowered)), self.lowered
        if any(map(_NOT_IN_PLACE.match, letters)):
            return None
        # Few letters have accents: replacing one takes a hundredth of the time of translating the text.
        for letter in letters & _letters_in_place().keys():
            text = text.replace(letter, _letters_in_place()[letter])
        return text


def _occurrences(searched: _SearchedText, phrases: Sequence[Sequence[str]]) -> Iterator[tuple[int, int, int]]:
    """(start, end, which phrase) of every occurrence, in order."""
    if not phrases:
        return
    # The longest first: a phrase before its first word.
    order = tuple(tuple(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    # Usually the words occur without accents, and removing accents from a whole text takes longer than
    # finding them.
    plain = _plainly(searched.lowered, order) if len(searched.lowered) == len(searched.text) else iter(())
    first = next(plain, None)
    if first is not None:
        yield first
        yield from plain
        return
    if searched.text.isascii():
        return
    if searched.folded is not None:
        yield from _plainly(searched.folded, order)
    else:
        for match in _pattern(order).finditer(searched.text):
            yield match.start(), match.end(), match.lastindex or 0


def _plainly(text: str, phrases: tuple[tuple[str, ...], ...]) -> Iterator[tuple[int, int, int]]:
    """Occurrences in folded text."""
    several = [_places(text, phrase, number) for number, phrase in enumerate(phrases, start=1)]
    return (
        several[0]
        if len(several) == 1
        else iter(heapq.merge(*several, key=lambda place: (place[0], -place[1])))
    )


def _places(text: str, phrase: tuple[str, ...], number: int) -> Iterator[tuple[int, int, int]]:
    """Where folded text has these whole words one after another: ten times as fast as a pattern."""
    first, rest = phrase[0], _rest_of_phrase(phrase[1:])
    at = text.find(first)
    while at >= 0:
        match = rest.match(text, at + len(first)) if not (at and text[at - 1].isalnum()) else None
        if match is not None:
            yield at, match.end(), number
        at = text.find(first, at + len(first))


@lru_cache(maxsize=256)
def _rest_of_phrase(words: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for what follows the first word: the others, and the end of the last."""
    return re.compile("".join(r"[\W_]+" + re.escape(word) for word in words) + r"(?![^\W_])")


@lru_cache(maxsize=1)
def _letters_in_place() -> dict[str, str]:
    """Letters with accents whose folded form is one letter."""
    return {char: base for base, chars in _variants().items() if len(base) == 1 for char in chars}


@lru_cache(maxsize=256)
def _beginning(starts: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for words that begin with one of these."""
    return re.compile(r"\b(?:" + "|".join(map(re.escape, starts)) + r")[^\W_]*")


@lru_cache(maxsize=256)
def _pattern(phrases: tuple[tuple[str, ...], ...]) -> re.Pattern[str]:
    """A pattern that finds folded words in text that is not folded."""
    parts = [
        r"[\W_]+".join("".join(map(_spellings, re.findall(_FOLDED, word))) for word in phrase)
        for phrase in phrases
    ]
    return re.compile(
        r"(?<![^\W_])(?:" + "|".join(f"({part})" for part in parts) + r")(?![^\W_])", re.IGNORECASE
    )


@lru_cache(maxsize=1024)
def _spellings(letters: str) -> str:
    """A pattern for everything that folds to these letters."""
    several = "".join(re.escape(char) for char in _variants().get(letters, "") if char not in letters)
    single = f"[{re.escape(letters)}{several}][\u0300-\u036f]*" if len(letters) == 1 else re.escape(letters)
    return f"(?:{single}|[{several}])" if len(letters) > 1 and several else single


@lru_cache(maxsize=1)
def _variants() -> dict[str, str]:
    """Letters with accents, by what they fold to."""
    variants: dict[str, str] = {}
    for code in [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]:
        char = chr(code)
        if char.isalpha() and folded(char) != char:
            variants[folded(char)] = variants.get(folded(char), "") + char
    return variants


def _best_window(text: str, occurrences: Sequence[tuple[int, int, int]]) -> Range:
    """The part with most of the phrases: in running text, if that has as many as menus and footers have."""
    if not occurrences:
        start = _first_prose(text)
        return start, _window_end(text, start, start)
    closest = _closest_together(occurrences)
    prose = _closest_together([place for place in occurrences if _is_prose(_line_around(text, place[0]))])
    if _count_phrases(prose) >= _count_phrases(closest):
        closest = prose
    start = _window_start(text, closest[0][0])
    return start, _window_end(text, start, closest[-1][1])


def _closest_together(occurrences: Sequence[tuple[int, int, int]]) -> Sequence[tuple[int, int, int]]:
    """Those within three quarters of a snippet, with most of the phrases and then most often; the first of
    several such places.
    """
    best: Sequence[tuple[int, int, int]] = ()
    left = 0
    for right, (_, end, _) in enumerate(occurrences):
        while end - occurrences[left][0] > SNIPPET_CHARS * 3 // 4 and left < right:
            left += 1
        inside = occurrences[left : right + 1]
        if (_count_phrases(inside), len(inside)) > (_count_phrases(best), len(best)):
            best = inside
    return best


def _count_phrases(occurrences: Sequence[tuple[int, int, int]]) -> int:
    return len({number for _, _, number in occurrences})


def _window_start(text: str, best: int) -> int:
    """The beginning of the line of the first word or, in a long line, a space shortly before the word."""
    start = max(best - SNIPPET_CHARS // 4, 0)
    line = text.rfind("\n", start, best)
    if start == 0 and line < 0:
        return 0
    space = line if line >= 0 else text.find(" ", start, best)
    return space + 1 if space >= 0 else start


def _window_end(text: str, start: int, last: int) -> int:
    """Where the snippet ends; if it is long enough, before a line of a footer without the wanted words."""
    end = _word_end(text, min(start + SNIPPET_CHARS, len(text)))
    at = text.find("\n", max(last, start), end)
    while at >= 0:
        following = text.find("\n", at + 1, end)
        is_long = at - start >= SNIPPET_CHARS // 4
        if is_long and _FOOTER.search(text[at + 1 : following if following >= 0 else end]):
            return at
        at = following
    return end


def _line_around(text: str, at: int) -> str:
    """The line with this place or, of a long one, what is near the place."""
    start = text.rfind("\n", max(at - SNIPPET_CHARS, 0), at) + 1 or max(at - SNIPPET_CHARS, 0)
    end = text.find("\n", at, at + SNIPPET_CHARS)
    return text[start : end if end >= 0 else at + SNIPPET_CHARS]


def _is_prose(line: str) -> bool:
    return (len(line) >= _PROSE_CHARS or bool(_SENTENCE_END.search(line))) and not _FOOTER.search(line)


def _first_prose(text: str) -> int:
    """Where the first line of running text begins: what is before it are menus."""
    at = 0
    for line in islice(text[:_SEARCHED_CHARS].split("\n"), _MOST_LINES_BEFORE_PROSE):
        if _is_prose(line[:SNIPPET_CHARS]):
            return at
        at += len(line) + 1
    return 0


def _word_end(text: str, end: int) -> int:
    """The end of the last whole word, if a space is near."""
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", max(end - 40, 0), end)
    return space if space > 0 else end


def _cleaned(
    cut: str, marks: Sequence[Range], *, leading: bool, trailing: bool
) -> tuple[str, tuple[Range, ...]]:
    """The text with line breaks as spaces, without marks, with dots where something was left out; and the
    moved ranges.
    """
    prefix = "… " if leading else ""
    moved: list[Range] = []
    kept, at = [prefix], 0
    length = len(prefix)
    for start, end in _disjoint(marks):
        before, inside = shown(cut[at:start]).replace("\n", " "), shown(cut[start:end]).replace("\n", " ")
        kept += [before, inside]
        moved.append((length + len(before), length + len(before) + len(inside)))
        length, at = moved[-1][1], end
    kept.append(shown(cut[at:]).replace("\n", " "))
    return "".join(kept).rstrip() + (" …" if trailing else ""), tuple(moved)


def _disjoint(marks: Sequence[Range]) -> Iterator[Range]:
    last = 0
    for start, end in marks:
        if start >= last:
            yield start, end
            last = end
