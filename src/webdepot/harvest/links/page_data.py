"""The data that an app fetches in place of a page when a link is clicked. No page names its address.

SvelteKit    `PAGE/__data.json`, if the page has data of its server (`type:"data"` in its start script);
             without it, readers of an archived site see an error after a click
Nuxt         `/_nuxt/builds/meta/BUILD.json`: which pages have data in files; without it, a click asks
             the server's interface for the data of each page
"""

import re
from urllib.parse import urlsplit, urlunsplit

from webdepot.url import Url

_SVELTEKIT = (b"__sveltekit_", b'type:"data"')
_NUXT = b"__NUXT__.config"
_NUXT_VALUE = re.compile(rb'\b(baseURL|buildId|buildAssetsDir|cdnURL):"([^"\\<>\s]*)"')


def find_page_data(url: Url, content: bytes) -> str | None:
    """The address of the data of a page; None if it has none."""
    if _NUXT in content:
        return _find_nuxt_builds(content)
    if not all(sign in content for sign in _SVELTEKIT):
        return None
    scheme, host, path, _, _ = urlsplit(url)
    # As SvelteKit does: `/a` and `/a/` have the same data, `/a.html` has data beside it.
    data = f"{path}__data.json" if path.endswith(".html") else f"{path.rstrip('/')}/__data.json"
    return urlunsplit((scheme, host, data, "", ""))


def _find_nuxt_builds(content: bytes) -> str | None:
    """As `buildAssetsURL` of Nuxt puts it together; None if the page is of a version without it."""
    config = content[content.index(_NUXT) :].partition(b"</script")[0].replace(b"\\u002F", b"/")
    values = {name.decode(): value.decode("utf-8", "replace") for name, value in _NUXT_VALUE.findall(config)}
    if not values.get("buildId") or "buildAssetsDir" not in values:
        return None
    base = (values.get("cdnURL") or values.get("baseURL") or "/").rstrip("/")
    return f"{base}/{values['buildAssetsDir'].strip('/')}/builds/meta/{values['buildId']}.json"
