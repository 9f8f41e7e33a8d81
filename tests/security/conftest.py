"""The small archives of the tests of the portal, to be attacked."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "web"))
