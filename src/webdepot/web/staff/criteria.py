"""The selection criteria of the institution: question, kind of answer, weight, whether it is required, and
who may answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import ADMINISTRATORS, Role
from webdepot.errors import InputError
from webdepot.selection.criteria import DEFAULT, AnswerKind, Criterion
from webdepot.services.selection import criteria as criteria_service
from webdepot.web.forms import read_fields
from webdepot.web.language.language import Language
from webdepot.web.problems import explain
from webdepot.web.site import language_of, may, name_of, render, site_of

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
        question_of=partial(_question_of, language_of(request)),
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
                wanted.append(_criterion(number, form, fields, language_of(request)))
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


def _question_of(language: Language, criterion: Criterion | TypedCriterion) -> str:
    """The question in the reader's language if it is one of ours."""
    is_ours = isinstance(criterion, Criterion) and criterion.is_default
    return _translated(language, criterion.code) if is_ours else criterion.question


def _translated(language: Language, code: str) -> str:
    return language.texts.get(f"criteria.default_{code.replace('-', '_')}", "")


def _criterion(
    number: int, form: Mapping[str, str], fields: Sequence[tuple[str, str]], language: Language
) -> Criterion:
    """A row of the form. A question of ours that was not changed is stored in English, so that others see
    it in their language.
    """
    code, question = form[f"code-{number}"].strip(), form.get(f"question-{number}", "").strip()
    ours = {each.code: each.question for each in DEFAULT}
    try:
        return Criterion(
            code=code,
            question=ours.get(code, question) if question == _translated(language, code) else question,
            kind=AnswerKind(form.get(f"kind-{number}", "")),
            weight=float(form.get(f"weight-{number}", "") or "1"),
            required=form.get(f"required-{number}", "") == "1",
            roles=frozenset(Role(value) for name, value in fields if name == f"roles-{number}"),
        )
    except ValueError:
        raise InputError(
            f"The kind, the weight or the roles of the criterion {code[:60]!r} are invalid."
        ) from None
