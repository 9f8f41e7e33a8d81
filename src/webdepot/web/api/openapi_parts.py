"""Parts shared by the descriptions of several interfaces: parameters, answers, paths of the replay host."""

from collections.abc import Mapping
from typing import Any

from webdepot.web.site import Site


def parameter(
    name: str,
    description: str,
    kind: str = "string",
    *,
    where: str = "query",
    required: bool = False,
    **schema: Any,
) -> dict[str, Any]:
    return {
        "name": name,
        "in": where,
        "required": required,
        "description": description,
        "schema": {"type": kind, **schema},
    }


def on_replay(site: Site, path: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    """A path of the replay host."""
    return {path: {"servers": [{"url": site.replay_url}], "get": operation}}


COLLECTION = parameter(
    "collection", "Name of a collection; `all` means the whole archive.", where="path", required=True
)
ADDRESS = parameter(
    "url", "The archived address, unescaped, with its own query string.", where="path", required=True
)
NOT_KEPT = {
    "404": {"description": "It is not archived, or it is hidden."},
    "451": {"description": "An access rule refuses it; the answer contains the reason."},
}
