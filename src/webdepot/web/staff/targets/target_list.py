"""The list of targets in the portal, its filter in the address, and its CSV."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from webdepot.accounts.roles import CURATORS
from webdepot.selection.states import TargetState
from webdepot.selection.target_list import TargetFilter, TargetSort
from webdepot.selection.targets import Origin
from webdepot.services.admin import bulk_actions, target_view
from webdepot.services.admin.bulk_actions import BulkAct
from webdepot.services.selection import csv_lists
from webdepot.web.forms import find_number, page_number
from webdepot.web.site import may, render, site_of


def show_list(request: Request) -> Response:
    return list_page(request)


def list_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    """The list, with what was wrong in a form on it."""
    wanted = filter_of(request)
    view = target_view.view_list(site_of(request).archive, wanted)
    return render(
        request,
        "targets.html",
        status=status,
        wrong=wrong,
        listing=view.listing,
        asked=wanted,
        counts=view.counts,
        harvests=view.harvests,
        link=lambda **changes: link_of(wanted, **changes),
        imported=find_number(request.query_params.get("imported", "")) or 0,
        sorts=list(TargetSort),
        origins=list(Origin),
        acts=_acts_for(wanted.state),
        may_change=may(request, CURATORS),
    )


def _acts_for(state: TargetState | None) -> list[str]:
    """Actions on many sites that are possible in a state, or in any."""
    return [act for act in BulkAct if state is None or bulk_actions.allows(state, act)]


def as_csv(request: Request) -> Response:
    """The whole list that is shown, as CSV."""
    lines = csv_lists.export(site_of(request).archive, filter_of(request))
    headers = {"Content-Disposition": 'attachment; filename="targets.csv"'}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def filter_of(request: Request) -> TargetFilter:
    """The filter in the address of the list; invalid values are ignored."""
    query = request.query_params
    state, origin, sort = query.get("state", ""), query.get("origin", ""), query.get("sort", "")
    return TargetFilter(
        state=TargetState(state) if state in tuple(TargetState) else None,
        words=query.get("q", "")[:200],
        collection=query.get("collection", "")[:60],
        origin=Origin(origin) if origin in tuple(Origin) else None,
        sort=TargetSort(sort) if sort in tuple(TargetSort) else TargetSort.NAME,
        descending=query.get("order", "") == "down",
        page=page_number(request),
    )


def link_of(wanted: TargetFilter, **changes: object) -> str:
    """The address of the list with some values changed; of its first page, unless `changes` name another."""
    values: dict[str, object] = {
        "state": wanted.state or "",
        "q": wanted.words,
        "collection": wanted.collection,
        "origin": wanted.origin or "",
        "sort": wanted.sort if wanted.sort is not TargetSort.NAME else "",
        "order": "down" if wanted.descending else "",
        **changes,
    }
    query = urlencode({name: str(value) for name, value in values.items() if value})
    return f"?{query}" if query else "?"
