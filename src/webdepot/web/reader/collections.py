"""Collections in the portal: a list, a page for each, and the form in which staff describe one."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.access.collection_pages import CollectionPage
from webdepot.accounts.roles import CURATORS
from webdepot.errors import InputError
from webdepot.services.access import collections
from webdepot.services.access.browse import collection_view
from webdepot.services.access.browse.start_pages import SiteCard
from webdepot.web import charts
from webdepot.web.forms import page_number, read_form
from webdepot.web.problems import explain
from webdepot.web.reader.page_pictures import path_of as picture_path
from webdepot.web.site import language_of, may, name_of, reader_of, render, site_of

TILES = 24
MOST_PAGES = 20
_AUTOMATIC = ""


def show_list(request: Request) -> Response:
    after = request.query_params.get("after", "")[:60]
    tiles = collection_view.list_tiles(
        site_of(request).archive,
        reader=reader_of(request),
        after=after,
        limit=TILES + 1,
        hidden=may(request, CURATORS),
    )
    more = f"/collections?{urlencode({'after': tiles[TILES - 1].page.name})}" if len(tiles) > TILES else ""
    return render(request, "collections.html", tiles=tiles[:TILES], more=more, picture_path=picture_path)


def show(request: Request) -> Response:
    name, is_editor = request.path_params["name"], may(request, CURATORS)
    number = min(page_number(request), MOST_PAGES)
    view = collection_view.view(
        site_of(request).archive, name, reader=reader_of(request), number=number, hidden=is_editor
    )
    return render(
        request,
        "collection.html",
        view=view,
        bars=charts.of_years(view.years, spoken=language_of(request)),
        paragraphs=_paragraphs(view.page.text),
        is_editor=is_editor,
        is_saved=bool(request.query_params.get("saved")),
        picture_path=picture_path,
        previous_page=f"/collections/{name}?page={number - 1}" if number > 1 else "",
        next_page=f"/collections/{name}?page={number + 1}" if view.has_more and number < MOST_PAGES else "",
    )


def show_form(request: Request) -> Response:
    return _form(request)


def _form(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    archive = site_of(request).archive
    page = collections.get(archive, request.path_params["name"], hidden=True)
    shown = given or {
        "title": page.title,
        "text": page.text,
        "public": "1" if page.is_public else "",
        "picture": f"{page.picture_timestamp} {page.picture_url}".strip(),
    }
    return render(
        request,
        "collection_edit.html",
        status=status,
        page=page,
        given=shown,
        wrong=wrong,
        pictures=collection_view.list_pictures(archive, page.name, reader=reader_of(request)),
        choice=_choice,
        picture_path=picture_path,
    )


def _choice(card: SiteCard) -> str:
    """The value of a picture in the form."""
    return f"{card.timestamp} {card.url}"


async def save(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_save, request, form)


def _save(request: Request, form: Mapping[str, str]) -> Response:
    timestamp, _, url = form.get("picture", _AUTOMATIC).partition(" ")
    is_chosen = bool(url) and len(timestamp) == 14 and timestamp.isascii() and timestamp.isdigit()
    page = CollectionPage(
        name=request.path_params["name"],
        title=" ".join(form.get("title", "").split()),
        text=form.get("text", ""),
        is_public=form.get("public", "") == "1",
        picture_url=url[:4000] if is_chosen else "",
        picture_timestamp=timestamp if is_chosen else "",
    )
    try:
        collections.save(site_of(request).archive, page, by=name_of(request))
    except InputError as error:
        return _form(request, status=400, given=form, wrong=explain(request, error))
    return RedirectResponse(f"/collections/{page.name}?saved=1", status_code=303)


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.split("\n\n") if part.strip()]
