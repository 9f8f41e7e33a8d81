"""The facts that a site states about itself, with at most four requests: front page (after redirects),
imprint, and security.txt.

Nothing is requested twice, and a host that does not respond is not requested again.
"""

from dataclasses import replace

from webdepot.selection.domains.facts import HostFacts, PageFacts, is_below, registrable
from webdepot.selection.domains.lookup.sources import Sources
from webdepot.url import host_of

MOST_REQUESTS = 4
_GERMAN = ("de", "at", "ch", "li")


async def visit_site(
    facts: HostFacts, sources: Sources, *, wants_imprint: bool, ports: tuple[int, int] = (80, 443)
) -> HostFacts:
    """The facts with the front page and, if wanted and available, the imprint."""
    facts = await _front(facts, sources, ports)
    front = facts.front
    if front is None or not wants_imprint or facts.imprint is not None:
        return facts
    if front.operators:
        return replace(facts, imprint=front)
    if front.status != 200 or (front.redirect and registrable(_host(front.redirect)) != facts.domain):
        return facts
    if front.imprint and is_below(_host(front.imprint), facts.domain):
        return await _imprint(facts, sources, front.imprint)
    return facts


async def guess_imprint(facts: HostFacts, sources: Sources) -> HostFacts:
    """The facts with the imprint at its usual address, if no page links to one."""
    front = facts.front
    if (
        front is None
        or front.status != 200
        or facts.imprint is not None
        or front.imprint
        or facts.requests >= MOST_REQUESTS
    ):
        return facts
    name = "impressum" if facts.host.rpartition(".")[2] in _GERMAN else "imprint"
    return await _imprint(facts, sources, f"{front.url.partition('://')[0]}://{host_of(front.url)}/{name}")


async def ask_security(facts: HostFacts, sources: Sources) -> HostFacts:
    """The facts with the contacts of security.txt (RFC 9116): rare, but reliable."""
    front = facts.front
    if front is None or facts.requests >= MOST_REQUESTS:
        return facts
    page = await sources.page(
        f"{front.url.partition('://')[0]}://{host_of(front.url)}/.well-known/security.txt"
    )
    good = page if page is not None and page.status == 200 and page.mail_domains else None
    return replace(facts, security=good, requests=facts.requests + 1)


async def _front(facts: HostFacts, sources: Sources, ports: tuple[int, int]) -> HostFacts:
    if facts.front is not None:
        return facts
    http, https = (f":{port}" if port != usual else "" for port, usual in zip(ports, (80, 443)))
    places = [f"https://{facts.host}{https}/", f"http://{facts.host}{http}/"]
    page: PageFacts | None = None
    requests = facts.requests
    for place in places if facts.certificate is not None else places[1:]:
        page = await sources.page(place)
        requests += 1
        if page is not None:
            break
    while (
        page is not None
        and page.redirect
        and requests < MOST_REQUESTS - 1
        and registrable(_host(page.redirect)) == facts.domain
    ):
        if page.redirect == page.url:
            break
        following = await sources.page(page.redirect)
        requests += 1
        if following is None:
            break
        page = following
    return replace(facts, front=page, requests=requests)


async def _imprint(facts: HostFacts, sources: Sources, url: str) -> HostFacts:
    if facts.requests >= MOST_REQUESTS:
        return facts
    page = await sources.page(url, as_imprint=True)
    requests = facts.requests + 1
    if (
        page is not None
        and page.redirect
        and requests < MOST_REQUESTS
        and registrable(_host(page.redirect)) == facts.domain
    ):
        page = await sources.page(page.redirect, as_imprint=True)
        requests += 1
    good = page if page is not None and page.status == 200 else None
    return replace(facts, imprint=good, requests=requests)


def _host(url: str) -> str:
    return host_of(url).partition(":")[0]
