"""The selection criteria of the institution: question, kind of answer, weight, whether it is required, and
who may answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.accounts import Role
from webdepot.errors import InputError
from webdepot.selection.criteria import DEFAULT, AnswerKind, Criterion
from webdepot.services.selection import criteria as criteria_service
from webdepot.web.forms import read_fields
from webdepot.web.problems import explain
from webdepot.web.site import ADMINISTRATORS, may, name_of, render, site_of

BLANKS = 2
"""Empty rows at the end of the form, for new criteria."""
ANSWERING = tuple(role for role in Role if role is not Role.READER)


def show_list(request: Request) -> Response:
    return _page(request, criteria_service.criteria_of(site_of(request).archive))


def _page(
    request: Request,
    criteria: "Sequence[Criterion] | Sequence[TypedCriterion]",
    *,
    status: int = 200,
    wrong: str = "",
) -> Response:
    archive = site_of(request).archive
    return render(
        request,
        "criteria.html",
        status=status,
        criteria=criteria,
        wrong=wrong,
        kinds=list(AnswerKind),
        roles=ANSWERING,
        blanks=range(BLANKS),
        points_needed=archive.config.selection.points_needed,
        is_default=tuple(criteria) == DEFAULT,
        is_saved=bool(request.query_params.get("saved")) and not wrong,
        may_change=may(request, ADMINISTRATORS),
    )


async def save(request: Request) -> Response:
    fields = await read_fields(request)
    return await run_in_threadpool(_save, request, fields)


def _save(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    """The fields of a row are `code-0`, `question-0`, … ; a row without a code is ignored."""
    form = dict(fields)
    wanted: list[Criterion] = []
    try:
        for number in range(100):
            if f"code-{number}" not in form:
                break
            if form[f"code-{number}"].strip():
                wanted.append(_criterion(number, form, fields))
        criteria_service.set_criteria(site_of(request).archive, wanted, by=name_of(request))
    except InputError as error:
        return _page(request, _typed(form, fields), status=400, wrong=explain(request, error))
    return RedirectResponse("/criteria?saved=1", status_code=303)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCriterion:
    """A row of the form as it was typed, right or wrong."""

    code: str
    question: str
    kind: str
    weight: str
    required: bool
    roles: Sequence[str]


def _typed(form: Mapping[str, str], fields: Sequence[tuple[str, str]]) -> list[TypedCriterion]:
    return [
        TypedCriterion(
            code=form[f"code-{number}"],
            question=form.get(f"question-{number}", ""),
            kind=form.get(f"kind-{number}", ""),
            weight=form.get(f"weight-{number}", ""),
            required=form.get(f"required-{number}", "") == "1",
            roles=[value for name, value in fields if name == f"roles-{number}"],
        )
        for number in range(100)
        if form.get(f"code-{number}", "").strip() or form.get(f"question-{number}", "").strip()
    ]


def _criterion(number: int, form: Mapping[str, str], fields: Sequence[tuple[str, str]]) -> Criterion:
    code = form[f"code-{number}"].strip()
    try:
        return Criterion(
            code=code,
            question=form.get(f"question-{number}", "").strip(),
            kind=AnswerKind(form.get(f"kind-{number}", "")),
            weight=float(form.get(f"weight-{number}", "") or "1"),
            required=form.get(f"required-{number}", "") == "1",
            roles=frozenset(Role(value) for name, value in fields if name == f"roles-{number}"),
        )
    except ValueError:
        raise InputError(
            f"The kind, the weight or the roles of the criterion {code[:60]!r} are invalid."
        ) from None
