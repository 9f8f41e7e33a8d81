"""The operator of a site according to its imprint. In German-speaking countries every site must have one (§ 5
DDG, § 25 MedienG).

An imprint names the operator, but also those who designed the site, paid for it, host it, supervise it or
took the photos. So each line is assigned to a section: a word such as "Design", "gefördert" or
"Aufsichtsbehörde" excludes its line (or, as a heading, the lines below it) from the operator's section. The
remaining lines give names, VAT ids, mail domains and towns. Street names are not names of organisations, even
if they contain "university".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from webdepot.selection.domains.lookup.registrant import mail_domains_in
from webdepot.selection.domains.names import looks_like_organisation

MOST_LINES = 600
_LONGEST_LINE = 400
_LONGEST_NAME = 140


class Section(StrEnum):
    OPERATOR = "operator"
    OTHER = "other"


_OPERATOR = re.compile(
    r"(?i)\A\W*(?:impressum|imprint|angaben (?:gemäß|gem\.|nach)|(?:dienste)?anbieter(?:in)?\b|"
    r"anbieterkennzeichnung|"
    r"betreiber(?:in)?\b|betrieben (?:von|durch)|"
    r"herausgeber(?:in)?\b|herausgegeben (?:von|durch)|(?:inhaltlich )?verantwortlich\w*|v\.i\.s\.d\.p|"
    r"legal notice|site "
    r"notice|legal information|"
    r"publisher\b|published by|operator\b|operated by|responsible\b|(?:service )?provider\b|éditeur|"
    r"mentions légales|"
    r"colofon|uitgever|eigenaar|"
    r"this (?:web)?site is (?:operated|published|run|provided|maintained) by|diese (?:web)?seite wird "
    r"(?:betrieben|"
    r"herausgegeben)|owner\b|inhaber(?:in)?\b|"
    r"kontakt\b|contact\b|(?:post)?anschrift\b|adresse\b|address\b|informationen? (?:gemäß|nach)|"
    r"rechtsträger|träger(?:in|"
    r"schaft)?\b|medieninhaber(?:in)?\b)"
)
_OTHER = re.compile(
    r"(?i)design|gestaltung|umsetzung|umgesetzt|realisi|programmier|konzept(?!ion der univ)|layout|grafik|"
    r"template|theme|"
    r"powered by|agentur|implementation|"
    r"implemented|developed by|entwick\w+ (?:von|durch)|hosting|hoster|gehostet|hosted|provider:|"
    r"rechenleistung|"
    r"förder|gefördert|fördert|funded|funding|\bfund\b|finanziert|financed|unterstütz|supported|sponsor|"
    r"mittel(?:n)? |grant|zuwendung|"
    r"partner|kooperation|zusammenarbeit|cooperation|collaboration|konsorti|consorti|in association|"
    r"together with|gemeinsam mit|verbund|"
    r"aufsicht|supervis|regulat|zuständige (?:kammer|behörde|stelle)|datenschutzbeauftrag|data protection "
    r"officer|"
    r"registergericht|amtsgericht|handelsregister|"
    r"vereinsregister|schlichtung|streitbeilegung|online dispute|commercial register|chamber|"
    r"berufsbezeichnung|haftpflicht|versicherung|"
    r"bildnachweis|bildrechte|foto|photo|bilder|picture|image credit|icons|schriften|fonts|urheber|"
    r"copyright|haftung|"
    r"liability|disclaimer|google|facebook|"
    r"links? (?:zu|to)|mitglied (?:der|im|von|in)|member of|vermarkt|anzeigen|übersetz|translation|"
    r"redaktionssystem|"
    r"content management|cms|"
    r"former|ehemals|projektträger|beteiligt|participating|provided with|mit freundlicher|thanks|dank an"
)
_SKIP = re.compile(
    r"(?i)vertreten|represented|vertretungsberechtigt|rektor|präsident|kanzler|geschäftsführ|vorstand|"
    r"vorsitzend|director|"
    r"managing|telefon|tel\.?:|phone|fax|"
    r"\busst?-?id|umsatzsteuer|vat\b|steuernummer|körperschaft des|rechtsform"
)
_STREET = re.compile(
    r"(?i)(?:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|ring|ufer|damm|markt|promenade|chaussee|street|road|"
    r"avenue|lane|"
    r"laan|straat|plein|rue|boulevard|postfach|"
    r"p\.?o\.? ?box|campus)\s*\d+\s*[a-z]?\b|\A\d+[a-z]?,? \w+ (?:street|road|avenue|lane)|\bpostfach\b|"
    r"\bgebäude\b|\braum\b"
)
_TOWN = re.compile(r"\A(?:[A-Z]{1,2}[- ])?\d{4,5}(?: ?[A-Z]{2})?\s+[A-ZÄÖÜ][\w .()/-]{1,60}\Z")
_BY = re.compile(
    r"(?i)\A.*?\b(?:betrieben|herausgegeben|published|operated|run|provided|maintained) (?:von|durch|by)\s+"
)
_LEGAL_END = re.compile(
    r"(?i)\b(?:g?gmbh|mbh|ag|kg|ohg|gbr|ug|e\. ?v|eg|ltd|inc|llc|plc|b\.?v|n\.?v|s\.?a)\b\.?(?: ?&.*)?\Z"
)
_SENTENCE = re.compile(r"(?i)\b(?:von|durch|by|mit|with|für|for|in|wird|is|powered)\b")
_TAIL = re.compile(r"(?i)(?<!\s)\s++(?:ist eine?|is a|ist als|wird|with its|mit sitz)\b.*\Z")
_ARTICLE = re.compile(r"(?i)\A(?:die|der|das|the|l'|la|le|het|de|von der|vom|by the|by|von|durch)\s+")
_PERSON = re.compile(
    r"\A(?:(?:Prof|Dr|Dipl|Ing|Mag|M\.?A|Herr|Frau|Mr|Mrs|"
    r"Ms)\.?[\w.-]*\s+)*(?:[A-ZÄÖÜ][\w'-]+\s+){1,3}[A-ZÄÖÜ][\w'-]+\Z"
)
_VAT = re.compile(
    r"\b(DE\s?\d{3}\s?\d{3}\s?\d{3}|ATU\s?\d{8}|NL\s?\d{9}\s?B\s?\d{2}|CHE-?\s?\d{3}\.?\d{3}\.?\d{3}|"
    r"GB\s?\d{3}\s?\d{4}\s?\d{2}|FR\s?[0-9A-Z]{2}\s?\d{9}|"
    r"BE\s?[01]?\d{3}\.?\d{3}\.?\d{3}|IT\s?\d{11}|ES\s?[A-Z]\d{7}[A-Z0-9]|LU\s?\d{8}|DK\s?\d{8}|PL\s?\d{10}|"
    r"SE\s?\d{12}|"
    r"FI\s?\d{8}|IE\s?\d{7}[A-Z]{1,2}|"
    r"EU\s?\d{9}|CZ\s?\d{8,10}|HU\s?\d{8})\b"
)
_AT = re.compile(r"(?<!\s)\s*+[\[({<]\s*+(?:at|ät|@|Klammeraffe)\s*+[\])}>]\s*+", re.IGNORECASE)
_DOT = re.compile(r"(?<!\s)\s*+[\[({<]\s*+(?:dot|punkt|\.)\s*+[\])}>]\s*+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imprint:
    """The facts in an imprint."""

    operators: tuple[str, ...]
    others: tuple[str, ...]
    persons: bool
    mail_domains: tuple[str, ...]
    vat_ids: tuple[str, ...]
    addresses: tuple[str, ...]


def read(lines: Sequence[str]) -> Imprint:
    """The facts in the lines of an imprint."""
    operators: list[str] = []
    others: list[str] = []
    mails: list[str] = []
    vats: list[str] = []
    towns: list[str] = []
    is_person = False
    for section, line in _sections(lines[:MOST_LINES]):
        names = list(_names(line))
        if section is Section.OTHER:
            others.extend(names)
            continue
        mails.extend(mail_domains_in(plain_mail(line)))
        vats.extend(vat_ids_in(line))
        towns.extend(part.strip() for part in re.split(r"[,|·•]", line) if _TOWN.match(part.strip()))
        if not _SKIP.search(line):
            operators.extend(names)
            is_person = is_person or (
                not operators and bool(_PERSON.match(_after_label(line).split(",")[0].strip()))
            )
    return Imprint(
        operators=tuple(dict.fromkeys(operators))[:8],
        others=tuple(dict.fromkeys(others))[:20],
        persons=is_person and not operators,
        mail_domains=tuple(dict.fromkeys(mails))[:10],
        vat_ids=tuple(dict.fromkeys(vats))[:5],
        addresses=tuple(dict.fromkeys(towns))[:5],
    )


def vat_ids_in(text: str) -> list[str]:
    """VAT ids in one spelling: `DE 123 456 789` -> `DE123456789`."""
    return [re.sub(r"[^A-Z0-9]", "", vat_id) for vat_id in _VAT.findall(text)]


def plain_mail(text: str) -> str:
    """A text with disguised mail addresses in plain form: `info (at) example [dot] org`."""
    return _DOT.sub(".", _AT.sub("@", text))


def _sections(lines: Sequence[str]) -> Iterator[tuple[Section, str]]:
    current = Section.OPERATOR
    for raw in lines:
        line = raw.strip()[:_LONGEST_LINE]
        if not line:
            continue
        label, colon, rest = line.partition(":")
        is_operator, is_other = bool(_OPERATOR.match(line)), bool(_OTHER.search(line))
        if is_operator and not _OTHER.search(label):
            if not (colon and rest.strip()) or len(line) < 60:
                current = Section.OPERATOR
            # "Betreiber: Freunde der Kunst, gefördert ..." is still a line about the operator; without a
            # label the other word decides.
            yield (Section.OTHER if is_other and not (colon and rest.strip()) else Section.OPERATOR), line
        elif is_other and current is Section.OPERATOR and not colon and _is_bare_name(line):
            yield Section.OPERATOR, line  # "Design & Partner GmbH" is a name
        elif is_other:
            # A heading ("Gefördert durch:") applies to the lines below it; a sentence or a line with content
            # only to itself.
            if not rest.strip() and len(line.split()) <= 5 and not looks_like_organisation(line):
                current = Section.OTHER
            yield Section.OTHER, line
        else:
            yield current, line


def _after_label(line: str) -> str:
    label, colon, rest = line.partition(":")
    return rest.strip() if colon and len(label) < 60 and rest.strip() else line


def _names(line: str) -> Iterator[str]:
    text = _BY.sub("", _after_label(plain_mail(line)), count=1)
    if _OPERATOR.match(text) and len(text.split()) <= 3 and text == line:
        return
    segments = [part.strip() for part in re.split(r"[,|·•]", text)]
    kept = [part for part in segments if part and not _is_place(part) and "@" not in part]
    name = _ARTICLE.sub("", _TAIL.sub("", ", ".join(kept))).strip(" .;:-–")
    if not 3 <= len(name) <= _LONGEST_NAME or len(name.split()) > 16 or _STREET.search(name):
        return
    if looks_like_organisation(name):
        yield name


def _is_place(text: str) -> bool:
    return bool(_STREET.search(text) or _TOWN.match(text)) or text.isdigit()


def _is_bare_name(line: str) -> bool:
    return bool(_LEGAL_END.search(line)) and len(line.split()) <= 7 and not _SENTENCE.search(line)
