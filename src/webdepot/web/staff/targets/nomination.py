"""Nominating sites in the portal: the form for one site, lists in CSV, and what a partner nominated."""

from collections.abc import Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS, STAFF
from webdepot.errors import Conflict, InputError
from webdepot.model import EVERYTHING, Purpose
from webdepot.selection.targets import Origin, Strategy
from webdepot.services.admin import target_view
from webdepot.services.catalogue import described_lists
from webdepot.services.harvest import seed_check
from webdepot.services.harvest.seed_check import SeedCheck
from webdepot.services.selection import csv_lists, targets
from webdepot.url import Url
from webdepot.web.forms import page_number, read_form, read_upload
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, person_of, reader_of, render, site_of

MOST_SHOWN = 100
"""Rows of a preview, and of targets that get no letter."""


def show_own(request: Request) -> Response:
    """What a partner nominated, and what became of it."""
    page = page_number(request)
    archive, reader = site_of(request).archive, reader_of(request)
    nominations = target_view.nominations_of(archive, name_of(request), reader, page=page)
    return render(
        request,
        "nominations.html",
        rows=nominations.rows,
        listing=nominations.listing,
        done=bool(request.query_params.get("done")),
    )


def show_new(request: Request) -> Response:
    return _new_page(request)


def _new_page(
    request: Request,
    *,
    status: int = 200,
    given: Mapping[str, str] | None = None,
    wrong: str = "",
    wrong_list: str = "",
    text: str = "",
    checks: Sequence[SeedCheck] = (),
) -> Response:
    blank = {"addresses": request.query_params.get("url", "")[:2000], "collection": EVERYTHING}
    return render(
        request,
        "target_new.html",
        status=status,
        given=given or blank,
        wrong=wrong,
        wrong_list=wrong_list,
        text=text,
        purposes=list(Purpose),
        strategies=list(Strategy),
        columns=csv_lists.COLUMNS,
        may_test=may(request, CURATORS),
        is_partner=origin_of(request) is Origin.PARTNER,
        checks=checks,
    )


async def make(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_make, request, form)


def _make(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    try:
        nomination = targets.draft(
            form.get("addresses", "").split(),
            name=form.get("name", ""),
            collection=form.get("collection", "") or EVERYTHING,
            purpose=form.get("purpose", "") or Purpose.HERITAGE,
            strategy=form.get("strategy", "") or Strategy.SELECTIVE,
            origin=origin_of(request),
            by=name_of(request),
            note=form.get("note", ""),
        )
    except InputError as error:
        return _new_page(request, status=400, given=form, wrong=explain(request, error))
    checks = _check_seeds(request, form, nomination.seeds)
    if checks:
        return _new_page(request, given=form, checks=checks)
    known = targets.find_known(archive, nomination.seeds[0])
    if origin_of(request) is Origin.PARTNER:
        # Contacts and notes are internal: partners learn only that the site is on the list.
        if known is None or not known.is_same:
            targets.enter(archive, nomination, by=name_of(request))
        return RedirectResponse("/nominations?done=1", status_code=303)
    if known is not None and known.is_same:
        return RedirectResponse(f"/targets/{known.dossier.id}?known=1", status_code=303)
    dossier, _ = targets.enter(archive, nomination, by=name_of(request))
    return RedirectResponse(f"/targets/{dossier.id}", status_code=303)


def _check_seeds(request: Request, form: Mapping[str, str], seeds: Sequence[Url]) -> list[SeedCheck]:
    """The results of the seed check, if the form asks only for the check, or if it asks for it before saving
    and a seed is probably wrong. A person who has seen the results can save anyway.
    """
    is_seen = form.get("checked", "").split() == list(seeds)
    asks_only = form.get("order") == "check"
    if origin_of(request) is Origin.PARTNER or not (asks_only or (form.get("check_first") and not is_seen)):
        return []
    checks = seed_check.check(site_of(request).archive, seeds)
    return checks if asks_only or any(check.problem for check in checks) else []


async def upload(request: Request) -> Response:
    content, fields = await read_upload(request, "list", longest=csv_lists.LONGEST_BYTES + 65_536)
    return await run_in_threadpool(_upload, request, content, fields.get("text", ""))


def _upload(request: Request, content: bytes, text: str) -> Response:
    try:
        preview = csv_lists.preview(
            site_of(request).archive,
            content or text.encode(),
            by=name_of(request),
            origin=origin_of(request),
        )
    except InputError as error:
        return _new_page(request, status=400, wrong_list=explain(request, error), text=text)
    return RedirectResponse(f"/targets/import/{preview.token}", status_code=303)


def show_import(request: Request) -> Response:
    return _import_page(request)


def _import_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    archive, token = site_of(request).archive, request.path_params["token"]
    preview = csv_lists.get_preview(archive, token, by=name_of(request), origin=origin_of(request))
    return render(request, "target_import.html", status=status, wrong=wrong, seen=preview, most=MOST_SHOWN)


def take_in(request: Request) -> Response:
    archive, token = site_of(request).archive, request.path_params["token"]
    try:
        imported = csv_lists.import_(archive, token, by=name_of(request), origin=origin_of(request))
    except Conflict as error:
        return _import_page(request, status=error.http_status, wrong=explain(request, error))
    if origin_of(request) is Origin.PARTNER:
        return RedirectResponse("/nominations?done=1", status_code=303)
    described_lists.describe(archive, imported.rows, by=name_of(request))
    return RedirectResponse(f"/targets?sort=created&order=down&imported={len(imported.new)}", status_code=303)


def origin_of(request: Request) -> Origin:
    """The origin of nominations by this person: partners nominate as partners, also in a list."""
    person = person_of(request)
    is_partner = person is not None and not person.roles & STAFF
    return Origin.PARTNER if is_partner else Origin.STAFF
