"""Every endpoint of the route tables is a function that takes a request, though its module is loaded when it
is first asked for.
"""

import importlib
import inspect
import typing

import pytest
from starlette.requests import Request
from starlette.responses import Response

from webdepot.web import app
from webdepot.web.app import FRAME_PAGES, PORTAL_PAGES, REPLAY_PAGES, Page


def endpoint_of(page: Page) -> typing.Any:
    """The function itself: a stand-in (`later.Later`) bears its module and name."""
    return getattr(importlib.import_module(page.endpoint.__module__), page.endpoint.__name__, None)


@pytest.mark.parametrize(
    "pages", [PORTAL_PAGES, FRAME_PAGES, REPLAY_PAGES], ids=["portal", "frame", "replay"]
)
def test_every_page_of_the_tables_is_there(pages: tuple[Page, ...]):
    for page in pages:
        endpoint = endpoint_of(page)
        assert inspect.isfunction(endpoint), (page.path, page.endpoint.__module__, page.endpoint.__name__)
        (asked,) = inspect.signature(endpoint).parameters
        said = typing.get_type_hints(endpoint)
        assert said[asked] is Request and issubclass(said["return"], Response), page.path


def test_every_module_that_is_loaded_later_has_a_page():
    """The one list in `app.py` names no module that is gone, and none that no page needs."""
    later = {name for name, value in vars(app).items() if type(value).__name__ == "Later"}
    used = {
        page.endpoint.__module__.rpartition(".")[2] for page in (*PORTAL_PAGES, *FRAME_PAGES, *REPLAY_PAGES)
    }
    assert later and later <= used
