"""How sound a file is by the rules of its own format, in the words JHOVE made known."""

from enum import StrEnum


class Validity(StrEnum):
    VALID = "valid"
    WELL_FORMED = "well-formed"
    NOT_VALID = "not valid"
    NOT_CHECKED = "not checked"
