"""Harvest profiles: the list, a profile with a form and its text to edit, the documented rules, and "why is
this address harvested?".
"""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import ADMINISTRATORS, CURATORS
from webdepot.errors import ConfigError, InputError, NotFound, NotPermitted, WebdepotError
from webdepot.harvest.fetch.fetch_mode import BEHAVIOURS
from webdepot.harvest.profile import HOST_KEYS, KEYS, HarvestProfile
from webdepot.harvest.scope.conditions import CONDITIONS
from webdepot.services.harvest import profile_form, profiles
from webdepot.services.harvest.profile_form import ProfileForm
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.site import may, name_of, render, site_of


def show_list(request: Request) -> Response:
    usable, broken = profiles.every(site_of(request).archive)
    return render(
        request, "profiles.html", profiles=usable, broken=broken, may_edit=may(request, CURATORS), problem=""
    )


def show(request: Request) -> Response:
    archive, name = site_of(request).archive, request.path_params["name"]
    problem, profile = "", None
    try:
        profile = profiles.get(archive, name)
    except NotFound:
        if not may(request, CURATORS):
            raise
    except ConfigError as error:
        problem = str(error)
    text = profiles.text_of(archive, name)
    return _page(request, name, text, profile, problem)


async def make(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    name = form.get("name", "").strip().lower()
    # The page of the profile checks the name and explains what is wrong with it.
    return RedirectResponse(
        f"/profiles/{name}" if name.replace("-", "").replace(".", "").isalnum() else "/profiles",
        status_code=303,
    )


async def save(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_save, request, form)


def explain(request: Request) -> Response:
    """Which rule decides about an address, by a profile or by a target's last harvest."""
    archive, query = site_of(request).archive, request.query_params
    explanation, problem = None, ""
    if query.get("url"):
        try:
            explanation = profiles.explain(
                archive,
                query["url"][:5000],
                target=query.get("target", ""),
                profile=query.get("profile", ""),
                seeds=query.get("seed", "").split(),
                path=query.get("path", "L"),
            )
        except WebdepotError as error:
            problem = str(error)
    usable, _ = profiles.every(archive)
    fields = {name: query.get(name, "") for name in ("url", "target", "profile", "seed", "path")}
    return render(request, "scope.html", found=explanation, problem=problem, profiles=usable, fields=fields)


def _save(request: Request, form: Mapping[str, str]) -> Response:
    archive, name, text = site_of(request).archive, request.path_params["name"], form.get("text", "")
    filled: ProfileForm | None = None
    try:
        if form.get("view") == "form":
            if text != profiles.text_of(archive, name):
                raise InputError(
                    "Someone else has saved this profile since you opened it. Open it again, and make your "
                    "changes there."
                )
            text, filled = profile_form.read(archive, name, text, form)
            if filled.errors:
                return _page(request, name, text, None, "", filled=filled, status=400)
        profiles.save(
            archive, name, text, agent=name_of(request), by_administrator=may(request, ADMINISTRATORS)
        )
    except NotPermitted as error:
        return _page(request, name, text, None, str(error), status=403)
    except (ConfigError, InputError) as error:
        return _page(request, name, text, None, str(error), filled=filled, status=400)
    return RedirectResponse(f"/profiles/{name}?saved=1", status_code=303)


def _page(
    request: Request,
    name: str,
    text: str,
    profile: HarvestProfile | None,
    problem: str,
    *,
    filled: ProfileForm | None = None,
    status: int = 200,
) -> Response:
    """The profile with its form, or with its text: if that was asked for or sent, or if no form can show
    it.
    """
    archive, query = site_of(request).archive, request.query_params
    is_sent = request.method == "POST"
    is_text = query.get("view") == "text" or (is_sent and filled is None)
    is_elsewhere = profile is not None and not text
    if filled is None and not is_text and not is_elsewhere:
        try:
            filled = profile_form.of_text(archive, name, text)
        except ConfigError as error:
            problem = problem or str(error)
    return render(
        request,
        "profile.html",
        status=status,
        name=name,
        text=text,
        profile=profile,
        problem=problem,
        form=filled,
        groups=profile_form.GROUPS,
        choices=profile_form.CHOICES,
        behaviours=BEHAVIOURS,
        lists=[key for key, known in KEYS.items() if known.kind is list],
        saved=query.get("saved") == "1" and not is_sent,
        may_edit=may(request, CURATORS),
        conditions=CONDITIONS,
        keys=KEYS,
        host_keys=HOST_KEYS,
    )
