"""Test crawls in the portal: the form, and what a test found. The crawl runs in the background, and every
process of the server can show it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS
from webdepot.errors import ConfigError, Conflict, InputError, NotFound, NotPermitted
from webdepot.services.harvest import crawl_test, profiles
from webdepot.services.jobs import job_control, kinds
from webdepot.services.schedule import plan_view
from webdepot.services.selection import targets
from webdepot.url import Url
from webdepot.web.forms import SHORT_FORM, find_number, read_form
from webdepot.web.jobs.portal_worker import error_of, start_job
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, render, site_of

MOST_AT_ONCE = 3
_FIELDS = ("addresses", "profile", "pages")


def show_form(request: Request) -> Response:
    """The form, filled in for a site (`target`), a profile or an address (`url`)."""
    query = request.query_params
    given = {"addresses": query.get("url", "")[:2000], "profile": query.get("profile", "")[:60]}
    if number := find_number(query.get("target", "")):
        start = plan_view.crawl_test_start(site_of(request).archive, number)
        given |= {"addresses": "\n".join(start.seeds[: crawl_test.MOST_ADDRESSES]), "profile": start.profile}
    return _form(request, given)


async def start(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_start, request, form)


def show(request: Request) -> Response:
    return render(request, "crawl_test.html", **_values(request))


def show_live(request: Request) -> Response:
    """What was found so far, for the script; the header `X-Ended` says that the test has ended."""
    values = _values(request)
    headers = {} if values["test"].state == "running" else {"X-Ended": "1"}
    return render(request, "_crawl_test_found.html", headers=headers, **values)


def _start(request: Request, form: Mapping[str, str]) -> Response:
    archive, by = site_of(request).archive, name_of(request)
    try:
        if sum(job.is_open for job in job_control.newest(archive, kinds.CRAWL_TEST)) >= MOST_AT_ONCE:
            raise Conflict(f"{MOST_AT_ONCE} test crawls are running. Wait until one of them has ended.")
        test = crawl_test.begin(
            archive,
            form.get("addresses", "").split(),
            profile=form.get("profile", "")[:60],
            limit_pages=find_number(form.get("pages", "").strip() or str(crawl_test.MOST_PAGES)) or 0,
            by=by,
        )
    except (InputError, ConfigError, Conflict, NotFound, NotPermitted) as error:
        return _form(
            request,
            form,
            wrong=explain(request, error),
            status=400 if isinstance(error, ConfigError) else error.http_status,
        )

    start_job(request, kinds.CRAWL_TEST, test.id, needs=crawl_test.place_of(test))
    return RedirectResponse(f"/scope/test/{test.id}", status_code=303)


def _form(request: Request, given: Mapping[str, str], *, wrong: str = "", status: int = 200) -> Response:
    usable, _ = profiles.every(site_of(request).archive)
    return render(
        request,
        "crawl_test_form.html",
        status=status,
        given={name: given.get(name, "") for name in _FIELDS},
        profiles=[profile.name for profile in usable],
        most_pages=crawl_test.MOST_PAGES,
        minutes=round(crawl_test.LONGEST_S / 60),
        wrong=wrong,
        may_start=may(request, CURATORS),
    )


def _values(request: Request) -> dict[str, Any]:
    archive = site_of(request).archive
    identifier = request.path_params["test"]
    job = job_control.find(archive, kinds.CRAWL_TEST, identifier)
    is_open = job is not None and job.is_open
    test = crawl_test.get(archive, identifier, is_waiting=is_open)
    if not is_open and (error := error_of(request, job)):
        test = replace(test, state="failed", note=error)
    known = targets.find_known(archive, Url(test.seeds[0]))
    target = known.dossier if known is not None and known.is_same else None
    return {
        "test": test,
        "target": target,
        "verdict": targets.may_harvest(archive, target.id) if target is not None else None,
        "may_start": may(request, CURATORS),
    }
