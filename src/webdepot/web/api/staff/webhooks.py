"""Web hooks for programs: list, add, try and remove them.

GET    /api/webhooks
POST   /api/webhooks
POST   /api/webhooks/{hook}/tests
DELETE /api/webhooks/{hook}
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.exchange.webhooks import HookEvent, MessageState, Webhook, WebhookMessage
from webdepot.services.exchange import webhooks
from webdepot.times import to_iso
from webdepot.web.api.input_fields import FieldKind, InputField, describe_body, read_json, read_query
from webdepot.web.api.openapi_parts import (
    MOMENT,
    TEXT,
    WHOLE,
    list_of,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.site import Site, name_of, site_of

EVENTS = tuple(event for event in HookEvent if event is not HookEvent.TEST)
NEW = (
    InputField(
        name="name",
        meaning="Name of the hook: lower-case letters, digits, - and _.",
        required=True,
        longest=60,
    ),
    InputField(name="url", meaning="Where messages are sent.", required=True, longest=webhooks.LONGEST_URL),
    InputField(
        name="events",
        meaning=f"Events that it is called for: {', '.join(EVENTS)}. Default: all.",
        kind=FieldKind.TEXTS,
        longest=60,
        most=len(EVENTS),
    ),
)


def show_list(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(
        {
            "webhooks": [
                {**_hook_json(each.hook), "messages": [_message_json(message) for message in each.messages]}
                for each in webhooks.every(site_of(request).archive)
            ]
        }
    )


async def add(request: Request) -> Response:
    return await run_in_threadpool(_add, request, await read_json(request, NEW))


def _add(request: Request, sent: dict[str, Any]) -> Response:
    """The hook with its secret, which only this answer contains."""
    events = webhooks.read_events(sent.get("events", ()))
    hook, secret = webhooks.add(
        site_of(request).archive, sent["name"], sent["url"], events, by=name_of(request)
    )
    return JSONResponse({**_hook_json(hook), "secret": secret}, status_code=201)


def test(request: Request) -> Response:
    message = webhooks.test(site_of(request).archive, request.path_params["hook"])
    return JSONResponse(_message_json(message))


def remove(request: Request) -> Response:
    hook = webhooks.remove(site_of(request).archive, request.path_params["hook"], by=name_of(request))
    return JSONResponse(_hook_json(hook))


def _hook_json(hook: Webhook) -> dict[str, Any]:
    return {
        "name": hook.name,
        "url": hook.url,
        "events": [event.value for event in hook.events],
        "created_by": hook.created_by,
        "created_at": to_iso(hook.created_at),
    }


def _message_json(message: WebhookMessage) -> dict[str, Any]:
    return {
        "id": message.name,
        "event": message.event.value,
        "state": message.state.value,
        "tries": message.tries,
        "error": message.error,
        "queued_at": to_iso(message.queued_at),
        "sent_at": to_iso(message.sent_at) if message.sent_at else None,
    }


# --- description ---

_HOOK = {
    "name": TEXT,
    "url": TEXT,
    "events": list_of(one_of(list(HookEvent))),
    "created_by": TEXT,
    "created_at": MOMENT,
}
SCHEMAS = {
    "Webhook": object_of(_HOOK),
    "WebhookMessage": object_of(
        {
            "id": TEXT,
            "event": one_of(list(HookEvent)),
            "state": one_of(list(MessageState)),
            "tries": WHOLE,
            "error": TEXT,
            "queued_at": MOMENT,
            "sent_at": nullable(MOMENT),
        }
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    message = ref("WebhookMessage")
    name = parameter("hook", "Name of the web hook.", where="path", required=True)
    listed = object_of({**_HOOK, "messages": list_of(message)})
    secret = {**TEXT, "description": "For the signatures of its messages; only this answer has it."}
    return {
        "/api/webhooks": {
            "get": operation(
                "listWebhooks",
                "Web hooks with their newest messages",
                object_of({"webhooks": list_of(listed)}),
            ),
            "post": operation(
                "addWebhook",
                "Add a web hook",
                object_of({**_HOOK, "secret": secret}),
                status=201,
                body=describe_body(NEW),
                errors=[409],
            ),
        },
        "/api/webhooks/{hook}": {
            "parameters": [name],
            "delete": operation(
                "removeWebhook", "Remove a web hook and its queued messages", ref("Webhook"), errors=[404]
            ),
        },
        "/api/webhooks/{hook}/tests": {
            "parameters": [name],
            "post": operation(
                "testWebhook", "Send a test message now; the answer says what happened", message, errors=[404]
            ),
        },
    }
