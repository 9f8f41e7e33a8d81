"""A tab with a context of its own, for pages of one host one after the other, each as if it were the first.

To make a room costs a second of processor time, mostly for the process of its tab; a further page in it costs
a fifth of that. So a room is used for some pages of one host and emptied between them: the page is left, and
what it has stored (cookies, databases) is forgotten.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from webdepot.harvest.browser.devtools import Wire
from webdepot.harvest.browser.launch import HEIGHT, WIDTH

MOST_PAGES = 25
EVERY_REQUEST = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}


@dataclass(slots=True, kw_only=True)
class Room:
    wire: Wire
    host: str
    context: str
    tab: str
    session: str
    call_s: float
    pages: int = 0

    @property
    def may_be_used_again(self) -> bool:
        return self.pages < MOST_PAGES and not self.wire.is_gone

    async def call(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        return await self.wire.call(method, parameters, session=self.session, time_s=self.call_s)

    async def empty(self, origins: Iterable[str]) -> None:
        """Leave the page and forget what its origins have stored. Whoever listens has stopped before."""
        await self.call("Runtime.evaluate", {"expression": "try { sessionStorage.clear() } catch {}"})
        await self.call("Page.navigate", {"url": "about:blank"})
        await asyncio.gather(
            *(
                self.call("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
                for origin in origins
            ),
            self.call("Network.clearBrowserCookies"),
        )

    async def close(self) -> None:
        self.wire.forget(self.session)
        await self.wire.call(
            "Target.disposeBrowserContext", {"browserContextId": self.context}, time_s=self.call_s
        )


async def make(wire: Wire, host: str, *, agent: str, call_s: float) -> Room:
    """A new room in which every request is stopped."""
    made = await wire.call("Target.createBrowserContext", {"disposeOnDetach": True}, time_s=call_s)
    context = made["browserContextId"]
    await wire.call(
        "Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": context}, time_s=call_s
    )
    tab = (
        await wire.call(
            "Target.createTarget", {"url": "about:blank", "browserContextId": context}, time_s=call_s
        )
    )["targetId"]
    session = (await wire.call("Target.attachToTarget", {"targetId": tab, "flatten": True}, time_s=call_s))[
        "sessionId"
    ]
    room = Room(wire=wire, host=host, context=context, tab=tab, session=session, call_s=call_s)
    screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    await asyncio.gather(
        room.call("Page.enable"),
        room.call("Page.setLifecycleEventsEnabled", {"enabled": True}),
        room.call(
            "Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}
        ),
        room.call("Fetch.enable", EVERY_REQUEST),
        room.call("Network.setBypassServiceWorker", {"bypass": True}),
        room.call("Emulation.setDeviceMetricsOverride", screen),
        *([room.call("Emulation.setUserAgentOverride", {"userAgent": agent})] if agent else []),
    )
    return room
