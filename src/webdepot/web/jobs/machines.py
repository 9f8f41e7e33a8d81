"""The page of machines, for administrators: which processes are alive, what they do, and takeovers."""

from starlette.requests import Request
from starlette.responses import Response

from webdepot.services.cluster import machines
from webdepot.web.site import render, site_of


def show(request: Request) -> Response:
    return render(
        request, "machines.html", view=machines.look(site_of(request).archive), alive_s=machines.ALIVE_S
    )
