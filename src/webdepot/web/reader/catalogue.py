"""The catalogue in the portal: sites by author, genre and keyword; the form to describe a site; its record in
other formats.
"""

from collections.abc import Mapping
from string import ascii_uppercase
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import Conflict, InputError
from webdepot.services.catalogue import description, records
from webdepot.services.catalogue.description import RecordForm
from webdepot.services.selection import targets
from webdepot.web.forms import read_form
from webdepot.web.problems import explain
from webdepot.web.site import name_of, render, site_of
from webdepot.web.staff.targets.target_page import target_of

ROWS = 50
_FIELDS = ("words", "creator", "genre", "keyword")
_LETTERS = (*ascii_uppercase, "0")
"""First letters, and `0` for everything else."""
MOST_SUBJECTS = 500
_LONG = frozenset({"abstract", "rights"})
_MEDIA = {
    RecordForm.MARCXML: "application/marcxml+xml",
    RecordForm.DUBLIN_CORE: "application/xml",
    RecordForm.JSON_LD: "application/ld+json",
}


def show_list(request: Request) -> Response:
    """Sites of the catalogue by title, filtered by author, genre, keyword, subject and first letter."""
    fields = {name: request.query_params.get(name, "").strip()[:200] for name in _FIELDS}
    subject, letter = request.query_params.get("subject", "").strip()[:200], _letter(request)
    after = request.query_params.get("after", "")[:200]
    rows = records.list_records(
        site_of(request).archive,
        words=fields["words"],
        creator=fields["creator"],
        genre=fields["genre"],
        keyword=fields["keyword"],
        subject=subject,
        initial=letter,
        limit=ROWS + 1,
        after=after,
    )
    chosen = {name: value for name, value in fields.items() if value}
    chosen |= {"subject": subject} if subject else {}
    next_page = (
        {**chosen, **({"letter": letter} if letter else {}), "after": rows[ROWS - 1].key}
        if len(rows) > ROWS
        else {}
    )
    return render(
        request,
        "catalogue.html",
        records=rows[:ROWS],
        asked=fields,
        subject=subject,
        letter=letter,
        letters=_LETTERS,
        letter_link=lambda each: _link("/catalogue", {**chosen, "letter": each}),
        more=urlencode(next_page),
    )


def show_subjects(request: Request) -> Response:
    """All subjects that begin with a letter, with the number of sites."""
    letter = _letter(request)
    return render(
        request,
        "subjects.html",
        subjects=records.list_subjects(site_of(request).archive, initial=letter, limit=MOST_SUBJECTS),
        letter=letter,
        letters=_LETTERS,
        letter_link=lambda each: _link("/catalogue/subjects", {"letter": each}),
    )


def _letter(request: Request) -> str:
    letter = request.query_params.get("letter", "").upper()
    return letter if letter in _LETTERS else ""


def _link(path: str, fields: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in fields.items() if value})
    return f"{path}?{query}" if query else path


def show_form(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    record, values, taken = description.draft(archive, target)
    shown = given or {
        name: "\n".join(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    return render(
        request,
        "describe.html",
        status=status,
        dossier=targets.get(archive, target),
        record=record,
        given=shown,
        taken=taken,
        wrong=wrong,
        fields=description.FIELDS,
        listed=description.LISTED,
        long=_LONG,
        may_be_named=description.may_assign_urn(archive, record),
        is_saved=bool(request.query_params.get("saved")) and not wrong,
    )


async def save(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_save, request, form)


def _save(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    values: dict[str, str | tuple[str, ...]] = {}
    for name in description.FIELDS:
        text = form.get(name, "").strip()
        values[name] = (
            tuple(line.strip() for line in text.split("\n") if line.strip())
            if name in description.LISTED
            else text
        )
    values["access"] = form.get("access", "")
    archive = site_of(request).archive
    try:
        record = description.save(archive, target, values, by=name_of(request))
        if form.get("urn", "").strip():
            records.assign_urn(archive, record.key, form["urn"], by=name_of(request))
    except (InputError, Conflict) as error:
        return _page(request, status=error.http_status, given=form, wrong=explain(request, error))
    return RedirectResponse(f"/targets/{target}/title?saved=1", status_code=303)


def export(request: Request) -> Response:
    """One record as MARCXML, Dublin Core or schema.org JSON-LD."""
    site = site_of(request)
    try:
        form = RecordForm(request.path_params["form"])
    except ValueError:
        raise HTTPException(404) from None
    return Response(
        description.as_text(site.archive, request.path_params["key"], form, portal_url=site.portal_url),
        media_type=_MEDIA[form],
    )
