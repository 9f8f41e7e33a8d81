"""Parts shared by the descriptions of several interfaces: parameters, answers, schemas, paths of the replay
host.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from webdepot.web.site import Site

PROBLEM_TYPE = "application/problem+json"


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


def operation(
    name: str,
    summary: str,
    answer: Mapping[str, Any],
    *,
    status: int = 200,
    parameters: Sequence[Mapping[str, Any]] = (),
    body: Mapping[str, Any] | None = None,
    errors: Sequence[int] = (),
) -> dict[str, Any]:
    """An operation of the API for staff, whose answer is JSON. `openapi` adds who may call it."""
    return {
        "operationId": name,
        "summary": summary,
        "parameters": list(parameters),
        **({"requestBody": body} if body is not None else {}),
        "responses": {
            str(status): {"description": "The answer.", "content": {"application/json": {"schema": answer}}},
            **{str(each): problem_answer(each) for each in (400, *errors)},
        },
    }


_PROBLEMS = {
    400: "The input is wrong; `detail` names the field.",
    401: "The API key is missing or not valid.",
    403: "The key does not have the role, or a rule of the archive refuses it.",
    404: "Nothing has this identifier; `detail` says what is missing.",
    409: "Its state does not allow this now.",
    413: "The body is too large.",
    415: "The body is not JSON.",
}


def problem_answer(status: int) -> dict[str, Any]:
    """An error in OpenAPI."""
    return {"description": _PROBLEMS[status], "content": {PROBLEM_TYPE: {"schema": ref("Problem")}}}


# --- schemas ---

TEXT: Mapping[str, Any] = {"type": "string"}
WHOLE: Mapping[str, Any] = {"type": "integer"}
FLAG: Mapping[str, Any] = {"type": "boolean"}
MOMENT: Mapping[str, Any] = {"type": "string", "format": "date-time"}
DAY: Mapping[str, Any] = {"type": "string", "format": "date"}
COUNTS: Mapping[str, Any] = {"type": "object", "additionalProperties": WHOLE}
TEXTS: Mapping[str, Any] = {"type": "array", "items": TEXT}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": [str(value) for value in values]}


def list_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def object_of(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An object that always has exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


PROBLEM = object_of({"type": TEXT, "title": TEXT, "status": WHOLE, "detail": TEXT, "code": TEXT})
VERDICT = object_of({"answer": one_of(["accept", "reject", "pass"]), "rule": TEXT, "reason": TEXT})

COLLECTION = parameter(
    "collection", "Name of a collection; `all` means the whole archive.", where="path", required=True
)
ADDRESS = parameter(
    "url", "The archived address, unescaped, with its own query string.", where="path", required=True
)
NOT_KEPT = {
    "400": {"description": "The address or a parameter is not valid."},
    "404": {"description": "It is not archived, or it is hidden."},
    "451": {"description": "An access rule refuses it; the answer contains the reason."},
}
