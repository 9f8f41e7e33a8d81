"""Environments of child processes: named variables only, never all of ours, which may contain secrets
(`WEBDEPOT_MAIL_PASSWORD`, keys of storage services).
"""

import os
from collections.abc import Mapping
from pathlib import Path

import webdepot

_COMMAND_NAMES = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
)


def of_command() -> dict[str, str]:
    """The variables for a program of the operator or the browser: where programs are, language, time zone."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _COMMAND_NAMES or name.startswith(("LC_", "FONTCONFIG_"))
    }


def of_module(extra: Mapping[str, str]) -> dict[str, str]:
    """The variables for a Python process that runs a module of this program: only where the program is."""
    libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    places = (str(source_folder()), extra.get("PYTHONPATH", ""))
    return {
        "LC_ALL": "C.UTF-8",
        **libraries,
        **extra,
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
    }


def source_folder() -> Path:
    """The folder from which this program is imported."""
    return Path(webdepot.__file__).resolve().parent.parent
