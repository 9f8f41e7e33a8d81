"""One harvest in a separate process, for `bench.harvest`: HOME SETTINGS.json -> HOME/bench.json.

Time is measured from the first progress report of the crawl, before it requests its first page: without
starting Python for the program and for each further process of the harvest.
"""

import json
import sys
import time
from pathlib import Path

from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions


def main(home: Path, settings: Path) -> None:
    given = json.loads(settings.read_text())
    extra = f"processes = {given['processes']}\n" if given.get("processes", 1) > 1 else ""
    setup.create(home, settings=f"[harvest]\nallow_private = true\ndelay_s = 0\nworkers = 64\n{extra}")
    with Archive.open(home) as archive:
        options = HarvestOptions.from_config(archive.config)
        harvest = runner.start_or_resume(archive, given["seeds"], options)
        told_at_s: list[float] = []
        done = runner.run(archive, harvest, watch=lambda progress: told_at_s.append(time.monotonic()))
        took_s = time.monotonic() - told_at_s[0]
    (home / "bench.json").write_text(json.dumps({"seconds": took_s, **done.counts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
