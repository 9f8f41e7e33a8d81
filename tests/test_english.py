"""Plain English: phrases that read as translated are refused in code, commands, pages and documents.

Each pattern has the wording to use instead. Names of commands, options and stored values are contracts and are
not prose: `ALLOWED` lists the few that look like a refused phrase.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REFUSED = {
    r"\bwhoever\b": "anyone who, the person who",
    r"\banew\b": "again; rebuild",
    r"(?<![-\w`\"'])mend(s|ed|ing)?\b(?![\"'`(.=])": "repair",
    r"(?<!there )\b(is|are|was|were) no (a|an|web|valid|known|legal|whole|real)\b": "is not a",
    r"(?<!there )\b(is|was) no (address|date|number|file|folder|name|harvest|container|package|record|URN|time|HTTP)\b": "is not a",
    r"\b(are|is|was|were) (still |then |also )?told\b": "is shown, is reported",
    r"\bstands? (in|on|at|above|behind|where|apart|there|beside)\b": "is in, is on",
    r"\bgo(es)? on (with|where|until|from)\b": "continue, resume",
    r"\bgone on with\b": "resumed",
    r"\bso many\b": "up to N, at most N, that many",
    r"\bby whoever\b": "by the person who",
    r"\bshall\b": "must",
    r"\bmission [KDX]\d": "nothing outside the repository",
    r"\bfrozen is so\b": "frozen only for the type checker",
    r"unless it was not its own": "unless the failure was not this URL's fault",
    r"so long a name": "how long to retry",
    r"what waits, waits": "its queue is kept for the next run",
    r"nearly each one is": "fast path for ordinary responses",
    r"for who does not want": "when … are not needed",
    r"of several in one second": "if several share a second",
    r"an old word cannot deceive": "stale messages are harmless",
    r"finds out whose hosts": "decides which organisation owns a host",
    r"what stands before": "options common to all commands",
    r"how its hosts are told": "how hosts are matched",
    r"let no date come true": "pause the schedule",
    r"do what time asks": "process deadlines, reminders and queued letters",
    r"nobody is known": "no personal data is stored",
    r"say what shall change": "nothing to change: give at least one of …",
    r"does not answer for what": "is not responsible for",
    r"\btake along\b": "download",
    r"(name or )?password is not right": "wrong name or password",
    r"another machine failed": "another server failed",
    r"\briddle\b": "CAPTCHA",
    r"did not come to an end": "did not finish",
    r"needs a person\b": "needs attention",
    r"oldest reading": "oldest check",
    r"nobody works on it": "not running",
    r"until now\b.*password|password until now": "current password",
    r"nothing of the kind": "no matching …",
    r"sign of life": "stopped responding",
    r"way of the data": "data flow",
    r"\ball the same\b(?!,? (as|for|to))": "anyway",
    r"\bfor ever\b": "permanently",
    r"\bany more\b": "no longer",
    r"\bmade usual\b": "made common",
    r"\bbeside (one another|each other|`|an? (import|harvest|server))": "in parallel, during, alongside",
    r"\blong work\b": "long-running work",
    r"\b(portal|server|process|worker) lives\b": "is alive",
    r"\b(files|text|bytes|hosts) of strangers\b": "untrusted files",
    r"\bby the way back\b": "with the back button",
    r"\bframe behind frame\b": "every frame",
    r"\bwords of several machines\b": "the text index of several machines",
    r"last_breaths": "SHUTDOWN_WAIT_TENTHS",
}
ALLOWED = re.compile(r"--mend\b|page-riddle")
PROSE = (
    *(ROOT / "src" / "webdepot").rglob("*.py"),
    *(ROOT / "src" / "webdepot" / "web" / "texts").glob("en.toml"),
    *(ROOT / "src" / "webdepot" / "selection" / "letter_texts").glob("en.toml"),
    *(ROOT / "src" / "webdepot" / "web" / "templates").iterdir(),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
    *(ROOT / "bench").glob("*.py"),
    *(ROOT / "scripts").iterdir(),
    ROOT / "Makefile",
)
TOGETHER = re.compile("|".join(f"(?:{pattern})" for pattern in REFUSED), re.IGNORECASE)


@pytest.mark.parametrize(
    "path",
    [path for path in PROSE if path.is_file()],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_phrase_reads_as_translated(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r} -> {_instead_of(match[0])}"
        for number, line in enumerate(lines, 1)
        for match in TOGETHER.finditer(ALLOWED.sub("", line))
    ]
    assert wrong == []


def _instead_of(phrase: str) -> str:
    return next(better for pattern, better in REFUSED.items() if re.search(pattern, phrase, re.IGNORECASE))


@pytest.mark.parametrize(
    "sentence",
    [
        "'x' is no web address.",
        "Made anew from the depot.",
        "Whoever opens it is told so.",
        "Nobody works on it now. Go on with: webdepot harvest resume",
        "What stands in the log.",
        "It is not there any more, but kept all the same.",
    ],
)
def test_the_patterns_find_what_they_are_for(sentence: str) -> None:
    assert TOGETHER.search(sentence)
