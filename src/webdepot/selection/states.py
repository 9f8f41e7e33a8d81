"""The states of a target, from a suggestion to a site that may be harvested, and of a letter to its owner, as
state tables.

The state alone does not decide whether a target may be harvested: `permission.gate` considers state, grounds
and letters together.
"""

from enum import StrEnum

from webdepot.states import Machine, Step


class TargetState(StrEnum):
    SUGGESTED = "suggested"
    NOMINATED = "nominated"
    JUDGED = "judged"
    PUT_OFF = "put off"
    REJECTED = "rejected"
    SELECTED = "selected"
    ASKED = "asked"
    CLEARED = "cleared"
    REFUSED = "refused"
    ENDED = "ended"
    IMPORTED = "imported"


class LetterState(StrEnum):
    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"
    UNDELIVERABLE = "undeliverable"
    ANSWERED = "answered"
    SILENT = "silent"
    WITHDRAWN = "withdrawn"


_S, _L = TargetState, LetterState
_UNDECIDED = (_S.SUGGESTED, _S.NOMINATED, _S.JUDGED)
_CHOSEN = (_S.SELECTED, _S.ASKED, _S.CLEARED)

TARGET = Machine(
    noun="target",
    steps=(
        Step(
            act="suggest", before=(), after=_S.SUGGESTED, meaning="The site was suggested in the public form."
        ),
        Step(
            act="nominate",
            before=(),
            after=_S.NOMINATED,
            meaning="Staff or a partner institution named it, alone or in a list.",
        ),
        Step(
            act="import",
            before=(),
            after=_S.IMPORTED,
            meaning="Containers of another archive were imported into it.",
        ),
        Step(
            act="nominate",
            before=(_S.SUGGESTED,),
            after=_S.NOMINATED,
            meaning="Staff accepted a suggestion for judgement.",
        ),
        Step(
            act="judge",
            before=(*_UNDECIDED, _S.PUT_OFF),
            after=_S.JUDGED,
            meaning="The criteria are answered, each with a reason; together they give a verdict.",
        ),
        Step(
            act="select",
            before=(_S.JUDGED,),
            after=_S.SELECTED,
            meaning="A person put it on the selection list.",
        ),
        Step(
            act="put off",
            before=(*_UNDECIDED, _S.SELECTED),
            after=_S.PUT_OFF,
            meaning="To be considered again, on a certain day or later; with a reason.",
        ),
        Step(
            act="reject",
            before=(*_UNDECIDED, _S.PUT_OFF, _S.SELECTED),
            after=_S.REJECTED,
            meaning="Not for this archive; with a reason.",
        ),
        Step(
            act="reopen",
            before=(_S.REJECTED, _S.PUT_OFF, _S.ENDED),
            after=_S.NOMINATED,
            meaning="It is considered again; with a reason.",
        ),
        Step(
            act="ask",
            before=(_S.SELECTED, _S.CLEARED),
            after=_S.ASKED,
            meaning="A letter was sent to the owner; the owner can refuse until the deadline.",
        ),
        Step(
            act="clear",
            before=(*_CHOSEN, _S.REFUSED),
            after=_S.CLEARED,
            meaning="There is a ground: consent, silence after the deadline, or one that needs no letter. "
            "After a refusal only consent.",
        ),
        Step(
            act="lose ground",
            before=(_S.ASKED, _S.CLEARED),
            after=_S.SELECTED,
            meaning="The letter was returned, or the ground ended or was withdrawn.",
        ),
        Step(
            act="refuse",
            before=(*_UNDECIDED, _S.PUT_OFF, _S.REJECTED, *_CHOSEN, _S.ENDED, _S.REFUSED, _S.IMPORTED),
            after=_S.REFUSED,
            meaning="The owner does not want it: running harvests are stopped and access is closed at once.",
        ),
        Step(
            act="end",
            before=(*_CHOSEN, _S.REFUSED),
            after=_S.ENDED,
            meaning="It is no longer harvested; what has been archived stays.",
        ),
    ),
    meanings={
        _S.SUGGESTED: "suggested by the public, not yet considered",
        _S.NOMINATED: "to be judged against the criteria",
        _S.JUDGED: "criteria answered; a person decides",
        _S.PUT_OFF: "to be considered again later",
        _S.REJECTED: "not for this archive; the reasons are kept",
        _S.SELECTED: "on the selection list; needs a ground",
        _S.ASKED: "a letter has been sent; the deadline has not passed",
        _S.CLEARED: "has a ground and may be harvested",
        _S.REFUSED: "the owner refused: neither harvested nor shown",
        _S.ENDED: "no longer harvested",
        _S.IMPORTED: "contains imported containers; never harvested",
    },
)

LETTER = Machine(
    noun="letter",
    steps=(
        Step(
            act="queue",
            before=(),
            after=_L.QUEUED,
            meaning="Written from its template and waiting to be sent.",
        ),
        Step(
            act="send",
            before=(_L.QUEUED, _L.FAILED),
            after=_L.SENT,
            meaning="The mail server accepted it; the deadline counts from this day.",
        ),
        Step(
            act="fail",
            before=(_L.QUEUED, _L.FAILED),
            after=_L.FAILED,
            meaning="The mail server did not accept it; it will be tried again.",
        ),
        Step(
            act="return",
            before=(_L.QUEUED, _L.FAILED, _L.SENT, _L.SILENT),
            after=_L.UNDELIVERABLE,
            meaning="The mailbox does not exist, or the letter was returned; there is no deadline.",
        ),
        Step(
            act="answer",
            before=(_L.SENT, _L.SILENT),
            after=_L.ANSWERED,
            meaning="The owner consented, refused or set conditions.",
        ),
        Step(
            act="pass in silence",
            before=(_L.SENT,),
            after=_L.SILENT,
            meaning="The deadline has passed without an answer.",
        ),
        Step(
            act="withdraw",
            before=(_L.QUEUED, _L.FAILED),
            after=_L.WITHDRAWN,
            meaning="It was withdrawn before it was sent.",
        ),
    ),
    meanings={
        _L.QUEUED: "waiting to be sent",
        _L.SENT: "sent; the owner has not answered yet",
        _L.FAILED: "could not be sent; will be tried again",
        _L.UNDELIVERABLE: "the address does not exist",
        _L.ANSWERED: "the owner answered",
        _L.SILENT: "the deadline passed without an answer: implied consent",
        _L.WITHDRAWN: "withdrawn before it was sent",
    },
)
