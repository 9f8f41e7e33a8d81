"""The institution's criteria in the portal: question, kind of answer, weight, whether it is required, and who
may answer.
"""

from collections.abc import Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import Role
from webdepot.errors import InputError
from webdepot.selection.criteria import DEFAULT, AnswerKind, Criterion
from webdepot.services.selection import criteria as criteria_service
from webdepot.web.forms import read_fields
from webdepot.web.problems import words_for
from webdepot.web.site import ADMINISTRATORS, person_of, render, site_of
from webdepot.web.staff.targets import by

BLANKS = 2
"""Empty rows at the end of the form, for new criteria."""
ANSWERING = tuple(role for role in Role if role is not Role.READER)


def listed(request: Request) -> Response:
    return _page(request, criteria_service.criteria_of(site_of(request).archive))


def _page(request: Request, asked: Sequence[Criterion], *, status: int = 200, wrong: str = "") -> Response:
    person = person_of(request)
    archive = site_of(request).archive
    return render(
        request,
        "criteria.html",
        status=status,
        criteria=asked,
        wrong=wrong,
        kinds=list(AnswerKind),
        roles=ANSWERING,
        blanks=range(BLANKS),
        points_needed=archive.config.selection.points_needed,
        is_default=tuple(asked) == DEFAULT,
        is_saved=bool(request.query_params.get("saved")) and not wrong,
        may_change=person is not None and bool(person.roles & ADMINISTRATORS),
    )


async def save(request: Request) -> Response:
    fields = await read_fields(request)
    return await run_in_threadpool(_saved, request, fields)


def _saved(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    """Rows come as `code-0`, `question-0`, … ; a row without a code is left out."""
    form = dict(fields)
    wanted: list[Criterion] = []
    try:
        for number in range(100):
            if f"code-{number}" not in form:
                break
            if form[f"code-{number}"].strip():
                wanted.append(_criterion(number, form, fields))
        criteria_service.set_criteria(site_of(request).archive, wanted, by=by(request))
    except InputError as error:
        shown = wanted or criteria_service.criteria_of(site_of(request).archive)
        return _page(request, shown, status=400, wrong=words_for(request, error))
    return RedirectResponse("/criteria?saved=1", status_code=303)


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
            f"A part of the criterion {code[:60]!r} is wrong: its kind, weight or roles."
        ) from None
