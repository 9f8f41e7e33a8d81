"""Sets of element, attribute and key names, written as one text."""


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())
