"""One harvest in a process of its own, for `bench.harvest`: HOME SETTINGS.json -> HOME/bench.json."""

import json
import sys
import time
from pathlib import Path

from webdepot.archive import Archive
from webdepot.services import founding, harvesting
from webdepot.services.harvest_options import HarvestOptions


def main(home: Path, settings: Path) -> None:
    given = json.loads(settings.read_text())
    extra = f"processes = {given['processes']}\n" if given.get("processes", 1) > 1 else ""
    founding.found(home, settings=f"[harvest]\nallow_private = true\ndelay_s = 0\nworkers = 64\n{extra}")
    with Archive.open(home) as archive:
        options = HarvestOptions.from_config(archive.config)
        harvest = harvesting.start_or_resume(archive, given["seeds"], options)
        started_s = time.monotonic()
        done = harvesting.run(archive, harvest)
        took_s = time.monotonic() - started_s
    (home / "bench.json").write_text(json.dumps({"seconds": took_s, **done.counts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
