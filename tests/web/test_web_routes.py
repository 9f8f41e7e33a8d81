"""Every endpoint of the route tables is a function that takes a request and returns a response."""

import inspect
import typing

import pytest
from starlette.requests import Request
from starlette.responses import Response

from webdepot.web.route_row import RouteRow, load_endpoint
from webdepot.web.routes import FRAME_ROUTES, PORTAL_ROUTES, REPLAY_ROUTES


@pytest.mark.parametrize(
    "pages", [PORTAL_ROUTES, FRAME_ROUTES, REPLAY_ROUTES], ids=["portal", "frame", "replay"]
)
def test_every_endpoint_takes_a_request_and_returns_a_response(pages: tuple[RouteRow, ...]):
    for page in pages:
        endpoint = load_endpoint(page.endpoint)
        assert inspect.isfunction(endpoint), (page.path, page.endpoint)
        (parameter,) = inspect.signature(endpoint).parameters
        hints = typing.get_type_hints(endpoint)
        assert hints[parameter] is Request and issubclass(hints["return"], Response), page.path
