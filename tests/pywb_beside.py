"""pywb in an environment of its own, because it needs other versions of libraries that we use.

`make install-test` makes it in `.pywb`; another place can be named in WEBDEPOT_PYWB. Where it is not, tests
say so and are skipped.
"""

import os
from pathlib import Path

import pytest

PROGRAMS = Path(os.environ.get("WEBDEPOT_PYWB", Path(__file__).parents[1] / ".pywb")) / "bin"
needs_pywb = pytest.mark.skipif(
    not (PROGRAMS / "wayback").exists(),
    reason=f"pywb is not installed in {PROGRAMS.parent}; make install-test does that",
)
