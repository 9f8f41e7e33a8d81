"""A scope rule and the three answers it can give."""

from collections.abc import Callable

from webdepot.model import Answer, Candidate, Verdict

Rule = Callable[[Candidate], Verdict]
PASS = Verdict(answer=Answer.PASS, rule="", reason="")
"""The rule has nothing to say about this address."""


def accept(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.ACCEPT, rule=rule, reason=reason)


def reject(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.REJECT, rule=rule, reason=reason)
