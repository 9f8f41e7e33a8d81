"""Everything about one file: identified by Siegfried, validated by the check of its format, both behind guards.

Two children share the work, since they differ: the one with the signatures takes a second to start and large memory, the one with the
checks dies more often. When the signatures do not come to an end with a file, its first bytes are looked at without them.

    identifying child    {"name", "mime"} + descriptor  ->  {"format"}
    checking child       {"format"} + descriptor        ->  {"validity", "findings", "properties"}
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from webdepot.formats import guard, media, validate
from webdepot.formats.guard import GaveUp, Guard, Limits, Message
from webdepot.formats.identify import RESOLVER_VERSION, SiegfriedIdentifier, evidence_of
from webdepot.formats.resolve import resolve
from webdepot.formats.texts import finding
from webdepot.formats.validity import Checked, Property, Validity
from webdepot.model import Basis, Finding, Format, FormatVerdict, Severity

MOST_FINDINGS = 20
_IDENTIFY = Limits(time_s=1.2, longest_s=3.0, memory_bytes=96 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a file is and how sound it is."""

    format: Format
    validity: Validity
    findings: Sequence[Finding]
    properties: Mapping[str, Property] = field(default_factory=dict)


class Examiner:
    """A guarded `FormatIdentifier` and checker. One thread at a time; close it, or use it in a `with`."""

    def __init__(self, signatures: Path | None = None, *, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen value
        named = (str(signatures),) if signatures else ()
        self._identifying = Guard(__name__, "identify", *named, limits=_IDENTIFY)
        self._checking = Guard(__name__, "check", limits=limits)

    @property
    def engine(self) -> str:
        return str(self._identifying.greeting()["engine"])

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        return self.examine(payload, name=name, mime=mime, checked=False).format

    def examine(self, payload: bytes | Path, *, name: str, mime: str, subject: str = "", checked: bool = True) -> Examined:
        """`subject` is what findings are about. Nothing that stands in a file makes this fail."""
        descriptor = guard.opened(payload)
        try:
            format, findings = self._identified(payload, descriptor, name, mime)
            done = self._checked(descriptor, format) if checked else Checked(validity=Validity.NOT_CHECKED)
        finally:
            os.close(descriptor)
        about = [replace(each, subject=subject) for each in (*findings, *done.findings)]
        return Examined(format=format, validity=done.validity, findings=about, properties=done.properties)

    def check(self, payload: bytes | Path, format: Format, *, subject: str = "") -> Checked:
        """Only the check of a format that is known already."""
        descriptor = guard.opened(payload)
        try:
            done = self._checked(descriptor, format)
        finally:
            os.close(descriptor)
        return replace(done, findings=[replace(each, subject=subject) for each in done.findings])

    def start(self) -> None:
        """Begin to start both children, which takes about a second."""
        self._identifying.start()
        self._checking.start()

    def close(self) -> None:
        self._identifying.close()
        self._checking.close()

    def __enter__(self) -> "Examiner":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _identified(self, payload: bytes | Path, descriptor: int, name: str, mime: str) -> tuple[Format, list[Finding]]:
        try:
            answer = self._identifying.ask({"name": name[-4096:], "mime": mime[:200]}, descriptor)
        except GaveUp as error:
            seen = resolve(evidence_of(payload, [], name=name, mime=media.essence(mime), quick=True))
            return seen, [finding("identify-gave-up", detail=error.finding.message)]
        return _format(answer["format"]), []

    def _checked(self, descriptor: int, format: Format) -> Checked:
        if not validate.has_check(format):
            return Checked(validity=Validity.NOT_CHECKED)
        try:
            answer = self._checking.ask({"format": asdict(format)}, descriptor)
        except GaveUp as error:
            return Checked(validity=Validity.NOT_CHECKED, findings=[error.finding])
        findings = [Finding(**each | {"severity": Severity(each["severity"])}) for each in answer["findings"]]
        return Checked(validity=Validity(answer["validity"]), findings=findings, properties=answer["properties"])


def _format(facts: dict[str, Any]) -> Format:
    return Format(**facts | {"basis": Basis(facts["basis"]), "verdict": FormatVerdict(facts["verdict"])})


# --- in the children -----------------------------------------------------------------------------------------------------


def _begin_identifying(arguments: list[str]) -> tuple[guard.Work, Message]:
    identifier = SiegfriedIdentifier(Path(arguments[2]) if len(arguments) > 2 else None)

    def work(question: Message, descriptor: int) -> Message:
        # The link that carries the extension must name this process's descriptor.
        found = identifier.identify(Path(f"/proc/self/fd/{descriptor}"), name=question["name"], mime=question["mime"])
        return {"format": asdict(found)}

    return work, {"engine": identifier.engine, "resolver": RESOLVER_VERSION}


def _begin_checking(arguments: list[str]) -> tuple[guard.Work, Message]:
    memory_bytes = int(arguments[0])

    def work(question: Message, descriptor: int) -> Message:
        format = _format(question["format"])
        validate.find_check(format)  # imports its library before the limit, which is meant for the file alone
        guard.limit_memory(memory_bytes)
        try:
            done = _checked_within(Path(f"/proc/self/fd/{descriptor}"), format)
        finally:
            guard.limit_memory(None)
        findings = [asdict(each) for each in list(done.findings)[:MOST_FINDINGS]]
        return {"validity": done.validity.value, "findings": findings, "properties": dict(done.properties)}

    return work, {}


def _checked_within(path: Path, format: Format) -> Checked:
    try:
        return validate.check(path, format)
    except MemoryError:
        found = finding("gave-up-memory")
    except RecursionError:
        found = finding("nested-too-deep", detail="more levels than can be read")
    except Exception as error:
        # Whatever a library throws at hostile bytes is an observation about the file, not about us.
        found = finding("checker-died", detail=f"{type(error).__name__}: {error}")
    return Checked(validity=Validity.NOT_CHECKED, findings=[found])


def main(arguments: list[str]) -> None:
    begin = {"identify": _begin_identifying, "check": _begin_checking}[arguments[3]]
    guard.serve(arguments, begin)


if __name__ == "__main__":
    main(sys.argv[1:])
