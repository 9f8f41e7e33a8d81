"""The small archives of the tests of the web, for attacks on them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "web"))
