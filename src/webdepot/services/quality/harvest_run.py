"""Run a harvest, and identify its files meanwhile.

Loads the crawler; imports, which have no crawl, use `early_identification` alone.
"""

from webdepot.archive import Archive
from webdepot.errors import RemoteError
from webdepot.model import Harvest, HarvestState
from webdepot.services.harvest import harvests, runner
from webdepot.services.index import derived_files
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import early_identification


def run(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Harvest:
    """Run a harvest as `runner.run` does. When it returns, what its containers need for the next steps is
    derived from them, unless the harvest was stopped.
    """
    try:
        with early_identification.identifying(archive) as early:
            done = runner.run(archive, harvest, watch=watch, on_sealed=early.add)
            if done.state is not HarvestState.STOPPED:
                early.wait(watch)
    except RemoteError:
        if harvests.get(archive, harvest.id).state is HarvestState.FAILED:
            derived_files.forget_harvest(archive, harvest.id)
        raise
    return done
