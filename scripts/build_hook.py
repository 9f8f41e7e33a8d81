"""Hatch build hook: adds the browser files, without which replay does not work, to a wheel or sdist of a
clean checkout.

`vendor.py` fetches those that are missing and checks them all. An sdist contains them, so that a wheel can be
built from it without a network. Editable installations fetch them in `scripts/setup.sh`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BrowserFilesHook(BuildHookInterface):
    """Runs before the files of a wheel or sdist are collected."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        script = Path(self.root) / "scripts" / "vendor.py"
        done = subprocess.run([sys.executable, str(script)], check=False, stdout=sys.stderr)
        if done.returncode:
            raise SystemExit("The package was not built: it would lack the browser part of replay.")
