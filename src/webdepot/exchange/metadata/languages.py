"""Codes of languages as library formats have them: three letters, the bibliographic ones (ISO 639-2/B); ours
may have two (ISO 639-1).
"""

_THREE = {
    "ar": "ara",
    "bg": "bul",
    "cs": "cze",
    "da": "dan",
    "de": "ger",
    "el": "gre",
    "en": "eng",
    "es": "spa",
    "et": "est",
    "fi": "fin",
    "fr": "fre",
    "fy": "fry",
    "he": "heb",
    "hr": "hrv",
    "hu": "hun",
    "is": "ice",
    "it": "ita",
    "ja": "jpn",
    "la": "lat",
    "lb": "ltz",
    "lt": "lit",
    "lv": "lav",
    "nl": "dut",
    "no": "nor",
    "pl": "pol",
    "pt": "por",
    "ro": "rum",
    "ru": "rus",
    "sk": "slo",
    "sl": "slv",
    "sr": "srp",
    "sv": "swe",
    "tr": "tur",
    "uk": "ukr",
    "zh": "chi",
}
_TWO = {three: two for two, three in _THREE.items()} | {
    "deu": "de",
    "nld": "nl",
    "fra": "fr",
    "zho": "zh",
    "ces": "cs",
}


def three_letters(code: str) -> str:
    return _THREE.get(code.lower(), code.lower())


def two_letters(code: str) -> str:
    """The form used inside; codes without one stay as they are."""
    return _TWO.get(code.lower(), code.lower())
