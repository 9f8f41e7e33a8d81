"""The frame of a check that walks through the parts of a file by their lengths (boxes, elements, chunks)."""

import struct
from collections.abc import Callable
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, DamagedFile, Property, judge
from webdepot.model import Finding

ReadStructure = Callable[[BinaryIO, dict[str, Property]], list[Finding]]
"""Reads a file, fills in its properties and returns findings; DamagedFile where it cannot continue."""


def check_structure(stream: BinaryIO, read: ReadStructure, *, code: str, part: str) -> CheckResult:
    """The result of `read`. Damage becomes a finding with that code; a file that is cut off ends in the
    middle of a `part`.
    """
    properties: dict[str, Property] = {}
    try:
        findings = read(stream, properties)
    except DamagedFile as error:
        findings = [finding(code, place=f"byte {error.place}", detail=error)]
    except (struct.error, EOFError):
        findings = [finding(code, place=f"byte {stream.tell()}", detail=f"it ends in the middle of {part}")]
    return judge(findings, properties)
