"""The data that an app fetches in place of a page when a link is clicked. No page names its address.

SvelteKit    `PAGE/__data.json`, if the page has data of its server (`type:"data"` in its start script);
             without it, readers of an archived site see an error after a click
"""

from urllib.parse import urlsplit, urlunsplit

from webdepot.url import Url

_SVELTEKIT = (b"__sveltekit_", b'type:"data"')


def find_page_data(url: Url, content: bytes) -> str | None:
    """The address of the data of a page; None if it has none."""
    if not all(sign in content for sign in _SVELTEKIT):
        return None
    scheme, host, path, _, _ = urlsplit(url)
    # As SvelteKit does: `/a` and `/a/` have the same data, `/a.html` has data beside it.
    data = f"{path}__data.json" if path.endswith(".html") else f"{path.rstrip('/')}/__data.json"
    return urlunsplit((scheme, host, data, "", ""))
