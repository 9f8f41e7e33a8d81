"""Does a site belong in the collection? Each criterion is a question with an answer and a reason (mission K2).

Criteria are values, not code: an institution's own list replaces `DEFAULT`. A site is accepted when every required
criterion is answered yes and at least one of the others is; what is not answered yet leaves the verdict open (pass).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.model import Answer, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    code: str
    question: str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A person's answer to one criterion."""

    criterion: str
    yes: bool
    reason: str


DEFAULT = (
    Criterion(
        code="national",
        question="Does it belong to the national domain in the wide sense (country, language, subject or maker)?",
        required=True,
    ),
    Criterion(code="scholarly", question="Has it scholarly content?"),
    Criterion(code="cultural", question="Has it cultural content?"),
    Criterion(code="innovative", question="Is it innovative in form or use?"),
    Criterion(code="public-act", question="Is it a record of public acts?"),
)


def judge(judgements: Sequence[Judgement], criteria: Sequence[Criterion] = DEFAULT) -> Verdict:
    """The verdict over all answers; it names the criterion that decided."""
    given: Mapping[str, Judgement] = {judgement.criterion: judgement for judgement in judgements}
    for criterion in criteria:
        answer = given.get(criterion.code)
        if criterion.required and answer is not None and not answer.yes:
            return Verdict(answer=Answer.REJECT, rule=criterion.code, reason=answer.reason)
    missing = [criterion.code for criterion in criteria if criterion.required and criterion.code not in given]
    if missing:
        return Verdict(answer=Answer.PASS, rule=missing[0], reason=f"not answered yet: {', '.join(missing)}")
    for criterion in criteria:
        answer = given.get(criterion.code)
        if not criterion.required and answer is not None and answer.yes:
            return Verdict(answer=Answer.ACCEPT, rule=criterion.code, reason=answer.reason)
    still_open = [criterion.code for criterion in criteria if criterion.code not in given]
    if still_open:
        return Verdict(answer=Answer.PASS, rule=still_open[0], reason=f"not answered yet: {', '.join(still_open)}")
    return Verdict(answer=Answer.REJECT, rule="none", reason="no criterion speaks for it")
