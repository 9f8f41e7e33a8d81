"""The environment of the programs that we start: the browser, virus scanners, converters, alarm commands.

Secrets of the archive may be in ours (`WEBDEPOT_MAIL_PASSWORD`, keys of depot places) and are nobody else's
business, so a child gets only variables that are on a list.
"""

import os
from collections.abc import Mapping

_NAMES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"),
        *("DISPLAY", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    )
)
_PREFIXES = ("LC_", "XDG_", "FONTCONFIG_", "PYTHON")


def for_child(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that a child process may have; proxies are not among them."""
    return {
        name: value for name, value in environment.items() if name in _NAMES or name.startswith(_PREFIXES)
    }
