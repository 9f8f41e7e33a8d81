"""Everything about one file: identified by Siegfried, validated by the check of its format, both behind
guards.

Two children share the work, since they differ: the one with the signatures takes a second to start and large
memory, the one with the checks dies more often. When the signatures do not come to an end with a file, its
first bytes are looked at without them.

    identifying child    {"place", "extension", "mime"}  ->  {"format"}
    checking child       {"place", "format"}             ->  {"validity", "findings", "properties"}

Many files are asked about at a time (`examine_many`): a message to a child and back costs more than most
files do.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from webdepot.formats import guard, media, validate
from webdepot.formats.batch import Batch, PayloadSlice
from webdepot.formats.guard import Guard, Limits, Message, PendingQuestions
from webdepot.formats.identify import (
    MOST_TOGETHER,
    RESOLVER_VERSION,
    Question,
    SiegfriedIdentifier,
    extension_of,
    quick_look,
)
from webdepot.formats.texts import finding
from webdepot.formats.validity import CheckResult, Property, Validity
from webdepot.model import Basis, Finding, Format, FormatVerdict, Severity

MOST_FINDINGS = 20
_IDENTIFY = Limits(time_s=1.2, longest_s=3.0, memory_bytes=96 << 20)
_GO = {"GOMAXPROCS": "1"}
"""For Siegfried, which is written in Go: handing the pieces of one file between threads costs a third of the
processor's time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a file is and how sound it is."""

    format: Format
    validity: Validity
    findings: Sequence[Finding]
    properties: Mapping[str, Property] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A file to look at, and what is said of it."""

    payload: bytes | Path
    name: str
    mime: str
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingExamination:
    """Files that the child with the signatures is looking at."""

    exhibits: Sequence[Exhibit]
    batch: Batch
    asked: PendingQuestions


class FileExaminer:
    """A guarded `FormatIdentifier` and checker. One thread at a time; close it, or use it in a `with`."""

    def __init__(self, signatures: Path | None = None, *, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen value
        named = (str(signatures),) if signatures else ()
        self._identifying = Guard(
            __name__, "identify", *named, limits=_IDENTIFY, environment=_GO, several=True
        )
        self._checking = Guard(__name__, "check", limits=limits)

    @property
    def engine(self) -> str:
        return str(self._identifying.greeting()["engine"])

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        return self.examine(payload, name=name, mime=mime, checked=False).format

    def examine(
        self, payload: bytes | Path, *, name: str, mime: str, subject: str = "", checked: bool = True
    ) -> Examined:
        """`subject` is what findings are about. Nothing that stands in a file makes this fail."""
        return self.examine_many(
            [Exhibit(payload=payload, name=name, mime=mime, subject=subject)], checked=checked
        )[0]

    def examine_many(self, exhibits: Sequence[Exhibit], *, checked: bool = True) -> list[Examined]:
        """Each of them, in order. All are held in memory at once, unless it is a single one on disk."""
        return self.end(self.begin(exhibits), checked=checked)

    def begin(self, exhibits: Sequence[Exhibit]) -> PendingExamination:
        """Show files to the child with the signatures. Whoever does so must `end` it, in the same order; the
        next ones may be shown before that, so that the child does not wait for them.
        """
        batch = Batch([each.payload for each in exhibits])
        try:
            questions = [
                {"place": place, "extension": extension_of(each.name), "mime": media.essence(each.mime)}
                for each, place in zip(exhibits, batch.places, strict=True)
            ]
            return PendingExamination(
                exhibits=exhibits, batch=batch, asked=self._identifying.begin(questions, batch.descriptor)
            )
        except BaseException:
            batch.close()
            raise

    def end(self, begun: PendingExamination, *, checked: bool = True) -> list[Examined]:
        """What the files are, and how sound."""
        with begun.batch as batch:
            answers = self._identifying.end(begun.asked)
            identified = [
                _identity(each, answer) for each, answer in zip(begun.exhibits, answers, strict=True)
            ]
            done = (
                self._checked([format for format, _ in identified], batch)
                if checked
                else [_NOT_CHECKED] * len(identified)
            )
        return [
            Examined(
                format=format,
                validity=one.validity,
                findings=[replace(found, subject=exhibit.subject) for found in (*findings, *one.findings)],
                properties=one.properties,
            )
            for exhibit, (format, findings), one in zip(begun.exhibits, identified, done, strict=True)
        ]

    def check(self, payload: bytes | Path, format: Format, *, subject: str = "") -> CheckResult:
        """Only the check of a format that is known already."""
        with Batch([payload]) as batch:
            done = self._checked([format], batch)[0]
        return replace(done, findings=[replace(each, subject=subject) for each in done.findings])

    def start(self, *, checked: bool = True) -> None:
        """Begin to start the children that will be needed, which takes about a second."""
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

    def _checked(self, formats: Sequence[Format], batch: Batch) -> list[CheckResult]:
        asked = [number for number, format in enumerate(formats) if validate.has_check(format)]
        questions = [{"place": batch.places[number], "format": _facts(formats[number])} for number in asked]
        # Meanwhile the other child looks at what was shown to it next.
        answers = (
            self._checking.end(
                self._checking.begin(questions, batch.descriptor), meanwhile=self._identifying.look
            )
            if asked
            else []
        )
        done = dict(zip(asked, answers, strict=True))
        return [_check(done[number]) if number in done else _NOT_CHECKED for number in range(len(formats))]


_NOT_CHECKED = CheckResult(validity=Validity.NOT_CHECKED)


def _identity(exhibit: Exhibit, answer: Message | Finding) -> tuple[Format, list[Finding]]:
    if isinstance(answer, Finding):
        seen = quick_look(exhibit.payload, name=exhibit.name, mime=exhibit.mime)
        return seen, [finding("identify-gave-up", detail=answer.message)]
    return _format(answer["format"]), []


def _check(answer: Message | Finding) -> CheckResult:
    if isinstance(answer, Finding):
        return CheckResult(validity=Validity.NOT_CHECKED, findings=[answer])
    findings = [Finding(**each | {"severity": Severity(each["severity"])}) for each in answer["findings"]]
    return CheckResult(
        validity=Validity(answer["validity"]), findings=findings, properties=answer["properties"]
    )


def _facts(format: Format) -> Message:
    """As `asdict`, which copies deeply and takes ten times as long."""
    return {name: getattr(format, name) for name in Format.__slots__}


def _format(facts: dict[str, Any]) -> Format:
    return Format(**facts | {"basis": Basis(facts["basis"]), "verdict": FormatVerdict(facts["verdict"])})


# --- in the children ---


def _begin_identifying(arguments: list[str]) -> tuple[guard.Work, Message]:
    identifier = SiegfriedIdentifier(Path(arguments[2]) if len(arguments) > 2 else None)

    def work(questions: list[Message], descriptor: int, several: bool) -> Iterator[Message]:
        together = MOST_TOGETHER if several else 1
        for start in range(0, len(questions), together):
            asked = [
                Question(piece=_piece(each, descriptor), extension=each["extension"], mime=each["mime"])
                for each in questions[start : start + together]
            ]
            for found in identifier.identify_pieces(asked):
                yield {"format": _facts(found)}

    return work, {"engine": identifier.engine, "resolver": RESOLVER_VERSION}


def _begin_checking(arguments: list[str]) -> tuple[guard.Work, Message]:
    memory_bytes = int(arguments[0])

    def work(questions: list[Message], descriptor: int, _: bool) -> Iterator[Message]:
        formats = [_format(each["format"]) for each in questions]
        for format in formats:
            validate.find_check(
                format
            )  # imports its library before the limit, which is meant for the files alone
        guard.limit_memory(memory_bytes)
        try:
            for each, format in zip(questions, formats, strict=True):
                done = _checked_within(_piece(each, descriptor), format)
                findings = [asdict(found) for found in list(done.findings)[:MOST_FINDINGS]]
                yield {
                    "validity": done.validity.value,
                    "findings": findings,
                    "properties": dict(done.properties),
                }
        finally:
            guard.limit_memory(None)

    return work, {}


def _piece(question: Message, descriptor: int) -> PayloadSlice:
    offset, size_bytes = question["place"]
    return PayloadSlice(descriptor=descriptor, offset=offset, size_bytes=size_bytes)


def _checked_within(piece: PayloadSlice, format: Format) -> CheckResult:
    try:
        with piece.opened() as stream:
            return validate.check(stream, format)
    except MemoryError:
        found = finding("gave-up-memory")
    except RecursionError:
        found = finding("nested-too-deep", detail="more levels than can be read")
    except Exception as error:
        # Whatever a library throws at hostile bytes is an observation about the file, not about us.
        found = finding("checker-died", detail=f"{type(error).__name__}: {error}")
    return CheckResult(validity=Validity.NOT_CHECKED, findings=[found])


def main(arguments: list[str]) -> None:
    begin = {"identify": _begin_identifying, "check": _begin_checking}[arguments[4]]
    guard.serve(arguments, begin)


if __name__ == "__main__":
    main(sys.argv[1:])
