"""A tab with its own browser context, reused for pages of one host; each page starts without stored data.

A new context takes a second of processor time, mostly for the process of its tab; a further page in it takes
a fifth of that. So a context is used for some pages of one host and cleared between them: the page is left,
and its cookies and storage are deleted.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from json import dumps
from typing import Any

from webdepot.harvest.browser.devtools import DevTools
from webdepot.harvest.browser.launch import HEIGHT, WIDTH

MOST_PAGES = 25
EVERY_REQUEST = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}


@dataclass(slots=True, kw_only=True)
class TabContext:
    devtools: DevTools
    host: str
    context_id: str
    tab: str
    """The id of the target, which is also the id of its main frame."""
    session: str
    call_s: float
    pages: int = 0
    is_spent: bool = False
    """Clicks have led its page to other routes. Chromium has crashed at a later page in such tabs."""

    @property
    def may_be_used_again(self) -> bool:
        return self.pages < MOST_PAGES and not self.is_spent and not self.devtools.is_gone

    async def call(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        return await self.devtools.call(method, parameters, session=self.session, time_s=self.call_s)

    async def clear(self, origins: Iterable[str]) -> None:
        """Leave the page and delete what its origins have stored."""
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
        self.devtools.forget(self.session)
        await self.devtools.call(
            "Target.disposeBrowserContext", {"browserContextId": self.context_id}, time_s=self.call_s
        )

    def abandon(self) -> None:
        """Close it without waiting for the browser, which answers late while a script of the page runs."""
        self.devtools.forget(self.session)
        parameters = dumps({"browserContextId": self.context_id}).encode()
        self.devtools.post("Target.disposeBrowserContext", parameters)


async def create(devtools: DevTools, host: str, *, agent: str, call_s: float) -> TabContext:
    """A new tab in its own context, in which every request is paused."""
    created = await devtools.call("Target.createBrowserContext", {"disposeOnDetach": True}, time_s=call_s)
    context_id = created["browserContextId"]
    await devtools.call(
        "Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": context_id}, time_s=call_s
    )
    tab = (
        await devtools.call(
            "Target.createTarget", {"url": "about:blank", "browserContextId": context_id}, time_s=call_s
        )
    )["targetId"]
    session = (
        await devtools.call("Target.attachToTarget", {"targetId": tab, "flatten": True}, time_s=call_s)
    )["sessionId"]
    context = TabContext(
        devtools=devtools, host=host, context_id=context_id, tab=tab, session=session, call_s=call_s
    )
    screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    await asyncio.gather(
        context.call("Page.enable"),
        context.call("Page.setLifecycleEventsEnabled", {"enabled": True}),
        context.call(
            "Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}
        ),
        context.call("Fetch.enable", EVERY_REQUEST),
        context.call("Network.setBypassServiceWorker", {"bypass": True}),
        context.call("Emulation.setDeviceMetricsOverride", screen),
        *([context.call("Emulation.setUserAgentOverride", {"userAgent": agent})] if agent else []),
    )
    return context
