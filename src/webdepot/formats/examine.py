"""Examine files: identify them with Siegfried and validate them with the check of their format, both in
guarded child processes.

Two children share the work, since they differ: the one with the signatures takes a second to start and much
memory, the one with the checks dies more often. If identification does not finish, the format is guessed from
the first bytes.

    identifying child    {"place", "ending", "mime"}  ->  {"format"}
    checking child       {"place", "format"}          ->  {"validity", "findings", "properties"}

A file on disk that is too large to copy into memory gets an identifying child of its own, whose walls let it
open this file.

Many files are examined at a time (`examine_many`): a message to a child and back costs more than most files
do.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from webdepot.formats import media, validate
from webdepot.formats.identify import (
    MOST_COPIED_BYTES,
    MOST_TOGETHER,
    RESOLVER_VERSION,
    Question,
    SiegfriedIdentifier,
    ending_of,
    quick_look,
)
from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity
from webdepot.guard import child
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.guard.child import Message
from webdepot.guard.process import Guard, GuardFailure, GuardReason, Limits, PendingQuestions
from webdepot.guard.walls import View
from webdepot.model import Basis, Finding, Format, FormatVerdict, Severity

MOST_FINDINGS = 20
_IDENTIFY = Limits(time_s=1.2, longest_s=60.0, memory_bytes=96 << 20, slowest_bytes_per_s=4 << 20)
"""Processor time decides: if elapsed time did, a busy machine would give other answers. Signatures with gaps
are searched in the complete file, at 17 MB per second in the worst case measured.
"""
_GO = {"GOMAXPROCS": "1"}
"""For Siegfried, which is written in Go: passing parts of a file between threads costs a third of the
processor time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The format of a file and its validity."""

    format: Format
    validity: Validity
    findings: Sequence[Finding]
    properties: Mapping[str, Property] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A file to examine, with its name and the media type from the server."""

    payload: bytes | Path
    name: str
    mime: str
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingExamination:
    """Files that a child with the signatures is identifying."""

    exhibits: Sequence[Exhibit]
    batch: Batch
    guard: Guard
    pending: PendingQuestions


class FileExaminer:
    """A guarded `FormatIdentifier` and checker. One thread at a time; close it, or use it in a `with`."""

    def __init__(
        self,
        signatures: Path | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen value
    ) -> None:
        self._signatures = (signatures.resolve(),) if signatures else ()
        self._identifying = self._new_guard()
        self._checking = Guard(__name__, "check", limits=limits)

    @property
    def engine(self) -> str:
        return str(self._identifying.greeting()["engine"])

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        return self.examine(payload, name=name, mime=mime, checked=False).format

    def examine(
        self, payload: bytes | Path, *, name: str, mime: str, subject: str = "", checked: bool = True
    ) -> Examined:
        """Identify and (if `checked`) validate a file. `subject` is the subject of findings. No content of a
        file makes this fail.
        """
        return self.examine_many(
            [Exhibit(payload=payload, name=name, mime=mime, subject=subject)], checked=checked
        )[0]

    def examine_many(self, exhibits: Sequence[Exhibit], *, checked: bool = True) -> list[Examined]:
        """Examine these files, in order. All are in memory at once, except a single file on disk."""
        return self.end(self.begin(exhibits), checked=checked)

    def begin(self, exhibits: Sequence[Exhibit]) -> PendingExamination:
        """Send files to the child with the signatures. The caller must `end` each call, in the same order;
        the next files may be sent before that, so that the child does not wait for them.
        """
        batch = Batch([each.payload for each in exhibits])
        guard = self._identifying
        if len(exhibits) == 1 and isinstance(path := exhibits[0].payload, Path) and _is_large(batch):
            guard = self._new_guard(path.resolve())
        try:
            questions = [
                {"place": place, "ending": ending_of(each.name), "mime": media.essence(each.mime)}
                for each, place in zip(exhibits, batch.places, strict=True)
            ]
            return PendingExamination(
                exhibits=exhibits,
                batch=batch,
                guard=guard,
                pending=guard.begin(questions, batch.descriptor),
            )
        except BaseException:
            batch.close()
            if guard is not self._identifying:
                guard.close()
            raise

    def end(self, begun: PendingExamination, *, checked: bool = True) -> list[Examined]:
        """The results for these files."""
        with begun.batch as batch:
            try:
                answers = begun.guard.end(begun.pending)
            finally:
                if begun.guard is not self._identifying:
                    begun.guard.close()
            identified = [
                _identity(each, answer) for each, answer in zip(begun.exhibits, answers, strict=True)
            ]
            results = (
                self._check_batch([format for format, _ in identified], batch)
                if checked
                else [_NOT_CHECKED] * len(identified)
            )
        return [
            Examined(
                format=format,
                validity=result.validity,
                findings=[replace(each, subject=exhibit.subject) for each in (*findings, *result.findings)],
                properties=result.properties,
            )
            for exhibit, (format, findings), result in zip(begun.exhibits, identified, results, strict=True)
        ]

    def check(self, payload: bytes | Path, format: Format, *, subject: str = "") -> CheckResult:
        """Validate a file whose format is already known."""
        with Batch([payload]) as batch:
            result = self._check_batch([format], batch)[0]
        return replace(result, findings=[replace(each, subject=subject) for each in result.findings])

    def start(self, *, checked: bool = True) -> None:
        """Start the children without waiting for them, which takes about a second."""
        self._identifying.start()
        if checked:
            self._checking.start()

    def close(self) -> None:
        self._identifying.close()
        self._checking.close()

    def __enter__(self) -> "FileExaminer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _new_guard(self, *readable: Path) -> Guard:
        return Guard(
            __name__,
            "identify",
            *map(str, self._signatures),
            limits=_IDENTIFY,
            view=View(readable=[*self._signatures, *readable], threads=True),  # Go needs threads
            environment=_GO,
            several=True,
        )

    def _check_batch(self, formats: Sequence[Format], batch: Batch) -> list[CheckResult]:
        numbers = [number for number, format in enumerate(formats) if validate.has_check(format)]
        questions = [{"place": batch.places[number], "format": _facts(formats[number])} for number in numbers]
        # Meanwhile the other child works on the next files.
        answers = (
            self._checking.end(
                self._checking.begin(questions, batch.descriptor), meanwhile=self._identifying.look
            )
            if numbers
            else []
        )
        done = dict(zip(numbers, answers, strict=True))
        return [_check(done[number]) if number in done else _NOT_CHECKED for number in range(len(formats))]


def _is_large(batch: Batch) -> bool:
    return batch.places[0][1] > MOST_COPIED_BYTES


_NOT_CHECKED = CheckResult(validity=Validity.NOT_CHECKED)


def _identity(exhibit: Exhibit, answer: Message | GuardFailure) -> tuple[Format, list[Finding]]:
    if isinstance(answer, GuardFailure):
        seen = quick_look(exhibit.payload, name=exhibit.name, mime=exhibit.mime)
        return seen, [finding("identify-gave-up", detail=_problem(answer).message)]
    return _format(answer["format"]), []


def _problem(failure: GuardFailure) -> Finding:
    """The finding about a file for which there is no answer."""
    match failure.reason:
        case GuardReason.TIME:
            return finding("gave-up-time", limit=failure.detail)
        case GuardReason.MEMORY:
            return finding("gave-up-memory")
        case GuardReason.DIED:
            return finding("checker-died", detail=failure.detail)


def _check(answer: Message | GuardFailure) -> CheckResult:
    if isinstance(answer, GuardFailure):
        return CheckResult(validity=Validity.NOT_CHECKED, findings=[_problem(answer)])
    findings = [Finding(**each | {"severity": Severity(each["severity"])}) for each in answer["findings"]]
    return CheckResult(
        validity=Validity(answer["validity"]), findings=findings, properties=answer["properties"]
    )


def _facts(format: Format) -> Message:
    """The fields of a format. `asdict` copies deeply and takes ten times as long."""
    return {name: getattr(format, name) for name in Format.__slots__}


def _format(facts: dict[str, Any]) -> Format:
    return Format(**facts | {"basis": Basis(facts["basis"]), "verdict": FormatVerdict(facts["verdict"])})


# --- in the children ---


def _begin_identifying(arguments: list[str]) -> tuple[child.Work, Message]:
    identifier = SiegfriedIdentifier(Path(arguments[2]) if len(arguments) > 2 else None)

    def work(questions: list[Message], descriptor: int, several: bool) -> Iterator[Message]:
        together = MOST_TOGETHER if several else 1
        for start in range(0, len(questions), together):
            batch = [
                Question(piece=_piece(each, descriptor), ending=each["ending"], mime=each["mime"])
                for each in questions[start : start + together]
            ]
            for format in identifier.identify_pieces(batch):
                yield {"format": _facts(format)}

    return work, {"engine": identifier.engine, "resolver": RESOLVER_VERSION}


def _begin_checking(arguments: list[str]) -> tuple[child.Work, Message]:
    memory_bytes = int(arguments[0])

    def work(questions: list[Message], descriptor: int, _: bool) -> Iterator[Message]:
        formats = [_format(each["format"]) for each in questions]
        for format in formats:
            validate.find_check(format)  # imports its library before the limit, which is for the files only
        child.limit_memory(memory_bytes)
        try:
            for each, format in zip(questions, formats, strict=True):
                result = _check_piece(_piece(each, descriptor), format)
                yield {
                    "validity": result.validity.value,
                    "findings": [asdict(finding) for finding in list(result.findings)[:MOST_FINDINGS]],
                    "properties": dict(result.properties),
                }
        finally:
            child.limit_memory(None)

    return work, {}


def _piece(question: Message, descriptor: int) -> PayloadSlice:
    offset, size_bytes = question["place"]
    return PayloadSlice(descriptor=descriptor, offset=offset, size_bytes=size_bytes)


def _check_piece(piece: PayloadSlice, format: Format) -> CheckResult:
    try:
        with piece.opened() as stream:
            return validate.check(stream, format)
    except MemoryError:
        problem = finding("gave-up-memory")
    except RecursionError:
        problem = finding("nested-too-deep", detail="more levels than can be read")
    except Exception as error:
        # Any exception of a library on hostile bytes is a finding about the file, not an error of ours.
        problem = finding("checker-died", detail=f"{type(error).__name__}: {error}")
    return CheckResult(validity=Validity.NOT_CHECKED, findings=[problem])


def main(arguments: list[str]) -> None:
    begin = {"identify": _begin_identifying, "check": _begin_checking}[arguments[child.FIRST_ARGUMENT]]
    child.serve(arguments, begin)


if __name__ == "__main__":
    main(sys.argv[1:])
