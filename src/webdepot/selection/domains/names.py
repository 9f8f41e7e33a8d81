"""Do two names mean the same organisation? Plain Levenshtein distance cannot decide: to it Koblenz is close
to Konstanz, and Uni is far from Universität.

Steps:

1. `folded`: lower case, ä/ae, ß/ss, accents removed, punctuation replaced by spaces.
2. `parsed`: the name is split into parts (at commas, dashes, `der`, `at the`); legal forms are dropped; words
   for a kind of organisation (Universität, University, Uni) become classes; words for a unit (Institut,
   Library, Rechenzentrum) mark their part as a unit; the other words are distinctive.
3. `compare`: the names are the same if one part has the kinds of the other name and every distinctive word on
   both sides has a partner within one edit per seven letters; other parts may only be units. A friends'
   society or a student union is a different organisation.
4. `Rarity` counts words over all names seen, so that a shared rare word counts more than a common one.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from rapidfuzz.distance import OSA, Levenshtein

LETTERS_PER_EDIT = 7
_SPECIAL = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "ß": "ss",
        "æ": "ae",
        "ø": "o",
        "œ": "oe",
        "ł": "l",
        "ð": "d",
        "þ": "th",
        "&": " und ",
    }
)
_OTHER_SIGNS = re.compile(r"[^a-z0-9]+")
_PARENTHESES = re.compile(r"\(([^()]*)\)")
_PART_ENDS = re.compile(r"[,;|/\n\r\t•·:()]|\s[-–—]\s")
_ACRONYM = re.compile(r"[A-Z][A-Za-z]?[A-Z]{1,6}\Z")
_LONGEST_NAME = 300
_LONG_KIND = 9
_SWAPPED = 5


class Kinship(StrEnum):
    SAME = "same"
    """The same name, perhaps in another spelling."""
    UNIT = "unit"
    """A part of the organisation: institute, library, faculty."""
    BESIDE = "beside"
    """Contains the name, but is a different organisation: friends, student union, spin-off."""
    OTHER = "other"
    UNKNOWN = "unknown"
    """One of the names has no usable words."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KINDS: dict[str, str] = {
    word: kind
    for kind, words in {
        "university": "universitaet universitaeten university uni universiteit universite universita "
        "universidad universidade univ universitas",
        "applied": "hochschule fachhochschule fh hogeschool",
        "clinic": "klinikum klinik kliniken clinic hospital krankenhaus spital universitaetsklinikum "
        "universitaetsklinik universitaetsmedizin",
        "school": "schule gymnasium realschule grundschule school college",
        "city": "stadt stadtverwaltung gemeinde landkreis kreis city municipality gemeente landratsamt "
        "kommune",
        "state": "ministerium ministry bundesamt landesamt regierung behoerde amt",
        "church": "kirche kirchengemeinde bistum pfarrei church",
        "club": "verein sportverein club klub turnverein musikverein foerderverein freundeskreis",
    }.items()
    for word in words.split()
}
_UNITS = _words(
    "institut institute instituut institutes department dept fakultaet faculty faculteit fachbereich "
    "fachschaft lehrstuhl "
    "chair bibliothek library bibliotheek "
    "rechenzentrum zentrum zentren center centre centrum abteilung arbeitsgruppe arbeitsstelle referat "
    "labor laboratory "
    "lab sekretariat verwaltung "
    "rektorat praesidium dekanat forschungsgruppe forschungsstelle research group graduiertenkolleg graduate "
    "sonderforschungsbereich sfb exzellenzcluster cluster "
    "sammlung archiv archive museum sternwarte botanischer garten hochschulsport servicezentrum kim "
    "dezernat professur akademie academy "
    "section division unit office seminar kolleg kollegs projekt project stabsstelle pressestelle "
    "medienzentrum "
    "sprachenzentrum verlagsabteilung "
    "studiengang programm programme"
)
_BESIDE = _words(
    "freunde freundeskreis foerderverein foerderer friends alumni ehemalige ehemaligen studierendenwerk "
    "studentenwerk studierendenschaft "
    "studierendenrat asta stura refrat gesellschaft stiftung foundation spinoff ausgruendung "
    "studentenverbindung burschenschaft "
    "studentenclub studentisch studentische hochschulgruppe initiative personalrat gewerkschaft verein "
    "union gaestehaus "
    "wohnheim sportverein"
)
_LEGAL = _words(
    "gmbh mbh ggmbh ag kg kgaa ohg gbr ug ev eg se sa sarl srl spa bv nv ltd limited inc llc plc corp "
    "corporation kdoer "
    "aoer koerperschaft oeffentlichen "
    "rechts recht anstalt haftungsbeschraenkt co eingetragener sas v vzw stichting"
)
_SAME_WORDS = {
    "tu": "technische universitaet",
    "th": "technische hochschule",
    "technical": "technische",
    "technology": "technologie",
    "munich": "muenchen",
    "cologne": "koeln",
    "vienna": "wien",
    "zurich": "zuerich",
    "geneva": "genf",
    "geneve": "genf",
    "nuremberg": "nuernberg",
    "hanover": "hannover",
    "brunswick": "braunschweig",
    "basle": "basel",
    "constance": "konstanz",
    "hague": "haag",
    "brussels": "bruessel",
    "lisbon": "lissabon",
    "prague": "prag",
    "milan": "mailand",
    "applied": "angewandte",
    "sciences": "wissenschaften",
}
"""Words with two common forms in names of institutions."""
_FILLERS = _words(
    "der die das des dem den the of at an am in im and und fuer for zu zum zur de la le les van het et du a "
    "o i e von vom by bei mit to l d"
)
_ARTICLES = _words("der des of at the an van de von fuer for im in")
_LIKELY_LEGAL = re.compile(
    r"(?i)\b(?:g?gmbh|mbh|ag|kg|ohg|gbr|ug|e\.?\s?v\.?|eg|ltd\.?|limited|inc\.?|llc|plc|b\.?v\.?|n\.?v\.?|"
    r"s\.?a\.?(?:r\.?l\.?|s)?|s\.?r\.?l\.?|k\.?d\.?ö\.?r\.?|"
    r"a\.?ö\.?r\.?|körperschaft|stiftung|foundation|verein|association|genossenschaft|gesellschaft|society|"
    r"council|verband|"
    r"bund|kammer|consortium|"
    r"kollektiv|redaktion|bundesamt|landesamt|netz(?:werk)?|werk|holding|group|gruppe|trust|"
    r"organi[sz]ation)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePart:
    """One part of a name, with its words by meaning."""

    kinds: frozenset[str]
    distinctive: frozenset[str]
    is_unit: bool
    is_beside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """How two names are related, and how rare their shared words are (0 to 1)."""

    kinship: Kinship
    rarity: float = 1.0


@dataclass(slots=True)
class Rarity:
    """How often each word occurs in the names seen so far. It grows to `limit` words; then only known words
    are counted.
    """

    counts: Counter[str] = field(default_factory=Counter)
    names: int = 0
    limit: int = 100_000

    def note(self, name: str) -> None:
        self.names += 1
        for word in set(folded(name).split()):
            if word in self.counts or len(self.counts) < self.limit:
                self.counts[word] += 1

    def of(self, words: Iterable[str]) -> float:
        """1 for words that no other name contains, falling to 0.2 for words in every name."""
        known = list(words)
        if not known or self.names < 20:
            return 1.0
        rarest = min(self.counts.get(word, 0) for word in known)
        return min(1.0, max(0.2, math.log(self.names / max(rarest, 1)) / math.log(max(self.names, 2))))


@lru_cache(maxsize=20_000)
def folded(text: str) -> str:
    """A text in one uniform spelling: `Universität Straße` -> `universitaet strasse`."""
    lowered = text[:_LONGEST_NAME].lower().translate(_SPECIAL)
    plain = "".join(
        sign for sign in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(sign)
    )
    return _OTHER_SIGNS.sub(" ", plain).strip()


def similarity(one: str, other: str) -> float:
    """Levenshtein similarity of two folded texts, 0 to 1, as the registrant rule uses it."""
    return Levenshtein.normalized_similarity(folded(one), folded(other))


def looks_like_organisation(text: str) -> bool:
    """Whether a line names an organisation rather than a person or a street."""
    if _LIKELY_LEGAL.search(text):
        return True
    return any(_kind_of(word) or word in _UNITS or word in _BESIDE for word in folded(text).split())


def acronyms_of(name: str) -> frozenset[str]:
    """Short names in parentheses: `Karlsruher Institut für Technologie (KIT)` -> `kit`."""
    return frozenset(folded(inner) for inner in _PARENTHESES.findall(name) if _ACRONYM.match(inner.strip()))


@lru_cache(maxsize=20_000)
def parsed(name: str) -> tuple[NamePart, ...]:
    """The parts of a name; empty for a name of only fillers and legal forms."""
    without = _PARENTHESES.sub(
        lambda match: " " if _ACRONYM.match(match[1].strip()) else match[0], name[:_LONGEST_NAME]
    )
    texts = (folded(text).split() for text in _PART_ENDS.split(without))
    pieces = (piece for words in texts for piece in _split_at_articles(_translated(words)))
    return tuple(part for part in map(_part, pieces) if part is not None)


def compare(name: str, known: str, rarity: Rarity | None = None) -> Kin:
    """How a name is related to the known name of the organisation."""
    kinship, words = _kinship(name, known)
    return Kin(kinship=kinship, rarity=rarity.of(words) if rarity is not None and words else 1.0)


@lru_cache(maxsize=50_000)
def _kinship(name: str, known: str) -> tuple[Kinship, frozenset[str]]:
    """The kinship and the distinctive words it is based on."""
    nothing: frozenset[str] = frozenset()
    if folded(name) == folded(known) and folded(name):
        return Kinship.SAME, nothing
    parts, wanted = parsed(name), _joined(parsed(known))
    if not parts or wanted is None:
        return Kinship.UNKNOWN, nothing
    if folded(name) in acronyms_of(known) or folded(known) in acronyms_of(name):
        return Kinship.SAME, nothing
    joined = _joined(parts)
    matching = [part for part in parts if _is_same(part, wanted)] or [
        part for part in (joined,) if part and _is_same(part, wanted)
    ]
    if not matching:
        names_it = (
            joined is not None
            and wanted.kinds <= joined.kinds
            and _all_have(wanted.distinctive, joined.distinctive)
        )
        return Kinship.BESIDE if names_it and wanted.distinctive else Kinship.OTHER, wanted.distinctive
    rest = [part for part in parts if part not in matching]
    if any(part.is_beside for part in (*rest, *matching)) and not wanted.is_beside:
        return Kinship.BESIDE, wanted.distinctive
    if all(part.is_unit or _is_place(part, wanted) for part in rest):
        is_unit = any(part.is_unit for part in (*rest, *matching)) and not wanted.is_unit
        return Kinship.UNIT if is_unit else Kinship.SAME, wanted.distinctive
    return Kinship.BESIDE, wanted.distinctive


def nearest(name: str, known: Iterable[str], rarity: Rarity | None = None) -> tuple[Kin, str]:
    """The closest kinship with any of the known names, and that name."""
    order = list(Kinship)
    best, whose = Kin(kinship=Kinship.UNKNOWN), ""
    for other in known:
        kin = compare(name, other, rarity)
        if not whose or order.index(kin.kinship) < order.index(best.kinship):
            best, whose = kin, other
    return best, whose


def _translated(words: list[str]) -> list[str]:
    return [part for word in words for part in _SAME_WORDS.get(word, word).split()]


def _split_at_articles(words: list[str]) -> list[list[str]]:
    """`Institut fuer Physik der Universitaet Konstanz`: the last word for a kind that follows an article
    begins a new part.
    """
    for at in range(len(words) - 1, 0, -1):
        if words[at - 1] in _ARTICLES and _kind_of(words[at]):
            begin = at - 1
            while begin > 0 and words[begin - 1] in _FILLERS:
                begin -= 1
            if begin:
                return [words[:begin], words[at:]]
    return [words]


def _part(words: list[str]) -> NamePart | None:
    kinds, distinctive, is_unit, is_beside = set(), set(), False, False
    for word in words:
        if word in _FILLERS or word in _LEGAL or word.isdigit():
            continue
        kind = _kind_of(word)
        if word in _BESIDE:
            is_beside = True
        elif kind:
            kinds.add(kind)
            is_unit |= word != "universitaets" and _is_compound_unit(word)
        elif word in _UNITS or _is_compound_unit(word):
            is_unit = True
            distinctive |= {word} if word not in _UNITS else set()
        else:
            distinctive.add(word)
    if not (kinds or distinctive or is_unit or is_beside):
        return None
    return NamePart(
        kinds=frozenset(kinds), distinctive=frozenset(distinctive), is_unit=is_unit, is_beside=is_beside
    )


@lru_cache(maxsize=20_000)
def _kind_of(word: str) -> str:
    if word in _KINDS:
        return _KINDS[word]
    if len(word) >= _LONG_KIND:
        # Allow for two swapped letters or a missing one: registrants are typed by hand.
        most = 2 if len(word) > _LONG_KIND + 1 else 1
        typed = next(
            (
                known
                for known in _KINDS
                if len(known) >= _LONG_KIND and OSA.distance(word, known, score_cutoff=most) <= most
            ),
            "",
        )
        if typed:
            return _KINDS[typed]
    # Compounds: the kind of Universitätsbibliothek is university, that of Universitätsklinikum is clinic.
    if word.startswith("universitaets"):
        return "clinic" if "klinik" in word or "medizin" in word else "university"
    if word.startswith("hochschul"):
        return "applied"
    return ""


def _is_compound_unit(word: str) -> bool:
    return any(
        word.endswith(unit) and len(word) > len(unit) + 2
        for unit in ("bibliothek", "zentrum", "verwaltung", "institut", "archiv", "labor")
    )


def _joined(parts: tuple[NamePart, ...]) -> NamePart | None:
    if not parts:
        return None
    return NamePart(
        kinds=frozenset().union(*(part.kinds for part in parts)),
        distinctive=frozenset().union(*(part.distinctive for part in parts)),
        is_unit=all(part.is_unit for part in parts),
        is_beside=any(part.is_beside for part in parts),
    )


def _is_same(part: NamePart, wanted: NamePart) -> bool:
    if part.kinds != wanted.kinds:
        return False
    if not wanted.distinctive:
        return bool(wanted.kinds) and not part.distinctive and part.is_unit == wanted.is_unit
    mine = part.distinctive
    if part.is_unit and not wanted.is_unit:
        # `Konstanz University Library of Arts`: the unit may have additional words.
        return _all_have(wanted.distinctive, mine)
    return _all_have(wanted.distinctive, mine) and _all_have(mine, wanted.distinctive)


def _all_have(words: frozenset[str], others: frozenset[str]) -> bool:
    return all(_has_partner(word, others) for word in words)


def _has_partner(word: str, others: frozenset[str]) -> bool:
    if word in others:
        return True
    if len(word) >= _SWAPPED and any(
        len(word) == len(other) and _is_swapped(word, other) for other in others
    ):
        return True
    most = len(word) // LETTERS_PER_EDIT
    return (
        any(OSA.distance(word, other, score_cutoff=max(most, 1)) <= most for other in others)
        if most
        else False
    )


def _is_swapped(word: str, other: str) -> bool:
    """Whether two neighbouring letters are swapped, the most common typing error."""
    return sorted(word) == sorted(other) and OSA.distance(word, other, score_cutoff=1) == 1


def _is_place(part: NamePart, wanted: NamePart) -> bool:
    """Whether a part only repeats words of the name: `Universität Konstanz, Konstanz`."""
    return not part.kinds and not part.is_beside and part.distinctive <= wanted.distinctive
