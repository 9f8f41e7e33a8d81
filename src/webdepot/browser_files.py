"""The third-party files for browsers (`web/vendor`): which they are, and whether they are what we pinned.

`browser_files.toml` names the packages and the SHA-512 of every file. `scripts/vendor.py`, which reads the
same table, fetches the files at installation from a checkout and when a wheel or sdist is built. `serve`
checks them at every start, because every reader's browser runs them.
"""

import base64
import hashlib
import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from webdepot.version import VERSION

TABLE = "browser_files.toml"


def packages() -> list[dict[str, Any]]:
    """The packages listed in `browser_files.toml`."""
    tree = tomllib.loads((resources.files("webdepot") / TABLE).read_text(encoding="utf-8"))
    return list(tree["package"])


def find_wrong(folder: Path | None = None) -> list[str]:
    """The names of the files that are missing or differ from those we pinned."""
    place = folder or Path(str(resources.files("webdepot"))) / "web" / "vendor"
    return [
        file["name"]
        for package in packages()
        for file in package["file"]
        if _integrity_of(place / file["name"]) != file["integrity"]
    ]


def remedy() -> str:
    """The command that fetches the files again; it differs between a checkout and an installed package."""
    if (Path(__file__).parents[2] / "scripts" / "vendor.py").exists():
        return "make install (or: python scripts/vendor.py)"
    return f"{sys.executable} -m pip install --force-reinstall --no-deps webdepot-{VERSION}-py3-none-any.whl"


def _integrity_of(path: Path) -> str:
    """The SHA-512 of a file as in Subresource Integrity (https://www.w3.org/TR/SRI/); empty if there is no
    such file.
    """
    if not path.is_file():
        return ""
    return "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode("ascii")
