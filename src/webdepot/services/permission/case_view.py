"""What the page of a complaint shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.provenance import Event
from webdepot.selection.cases import CASE, Case
from webdepot.selection.letter_rows import Letter
from webdepot.services.permission import complaints


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    case: Case
    acts: Sequence[str]
    """What can be done with it in its state."""
    history: Sequence[Event]
    letters: Sequence[Letter]
    others: Sequence[Case]
    """Other cases about the same host."""


def view(archive: Archive, which: str) -> CaseView:
    """A case by its reference; NotFound when there is none."""
    case = complaints.get(archive, which)
    return CaseView(
        case=case,
        acts=list(CASE.acts(case.state)),
        history=complaints.history(archive, case),
        letters=complaints.letters_of(archive, case),
        others=complaints.same_host(archive, case),
    )
