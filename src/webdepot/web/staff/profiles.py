"""Profiles in the portal: the list, one profile with its text to edit, the documented rules, and "why is this
address harvested?".
"""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import ConfigError, InputError, NotFound, WebdepotError
from webdepot.harvest.fetch.mode import Fetching
from webdepot.harvest.profile import HOST_KEYS, KEYS
from webdepot.harvest.scope.conditions import CONDITIONS
from webdepot.services.harvest import profiles
from webdepot.web.sign_in import read_form
from webdepot.web.site import CURATORS, person_of, render, site_of

_NEW = 'description = ""\nscope = "host"\n\n# [[rules]]\n# reject = "extension"\n# of = ["avi", "mp4"]\n'


def listed(request: Request) -> Response:
    good, broken = profiles.every(site_of(request).archive)
    return render(
        request, "profiles.html", profiles=good, broken=broken, may_edit=_may_edit(request), problem=""
    )


def shown(request: Request) -> Response:
    archive, name = site_of(request).archive, request.path_params["name"]
    problem, profile = "", None
    try:
        profile = profiles.get(archive, name)
    except NotFound:
        if not _may_edit(request):
            raise
    except ConfigError as error:
        problem = str(error)
    text = profiles.text_of(archive, name)
    return _page(request, name, text or ("" if profile else _NEW), profile, problem)


async def make(request: Request) -> Response:
    form = await read_form(request)
    name = form.get("name", "").strip().lower()
    # The name is checked by the page it leads to, which says what is wrong with it.
    return RedirectResponse(
        f"/profiles/{name}" if name.replace("-", "").replace(".", "").isalnum() else "/profiles",
        status_code=303,
    )


async def save(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_saved, request, form)


def explain(request: Request) -> Response:
    """Which rule decides about an address; the rules of a profile or of a target's last harvest."""
    archive, asked = site_of(request).archive, request.query_params
    found, problem = None, ""
    if asked.get("url"):
        try:
            seeds = asked.get("seed", "").split()
            found = profiles.explain(
                archive,
                asked["url"][:5000],
                target=asked.get("target", ""),
                profile=asked.get("profile", ""),
                seeds=seeds,
                path=asked.get("path", "L"),
            )
        except WebdepotError as error:
            problem = str(error)
    good, _ = profiles.every(archive)
    fields = {name: asked.get(name, "") for name in ("url", "target", "profile", "seed", "path")}
    return render(request, "scope.html", found=found, problem=problem, profiles=good, fields=fields)


def _saved(request: Request, form: Mapping[str, str]) -> Response:
    archive, name, person = site_of(request).archive, request.path_params["name"], person_of(request)
    text = form.get("text", "").replace("\r\n", "\n")
    try:
        text = profiles.with_fetch(text, form.get("fetch", ""))
        profiles.save(archive, name, text, agent=person.name if person else "")
    except (ConfigError, InputError) as error:
        return _page(request, name, text, None, str(error), status=400)
    return RedirectResponse(f"/profiles/{name}", status_code=303)


def _page(
    request: Request, name: str, text: str, profile: object, problem: str, *, status: int = 200
) -> Response:
    return render(
        request,
        "profile.html",
        status=status,
        name=name,
        text=text,
        profile=profile,
        problem=problem,
        may_edit=_may_edit(request),
        conditions=CONDITIONS,
        keys=KEYS,
        host_keys=HOST_KEYS,
        ways=list(Fetching),
    )


def _may_edit(request: Request) -> bool:
    person = person_of(request)
    return person is not None and bool(person.roles & CURATORS)
