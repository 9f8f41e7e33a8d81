"""Language codes: library formats use the three letters of ISO 639-2/B (bibliographic), the catalogue may use
the two letters of ISO 639-1.
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
    """The code as used in the catalogue; a code without two letters stays as it is."""
    return _TWO.get(code.lower(), code.lower())
