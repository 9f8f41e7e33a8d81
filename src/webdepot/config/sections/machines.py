"""Sections about who does the work: jobs of the portal, batch work, harvesters on several machines."""

import socket
from dataclasses import dataclass

from webdepot.config.keys import at_least, check_scheduler, key, one_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Where containers are read, for the indexes and to identify formats."""

    kind: str = key(
        "processes",
        "processes (of this machine), or dask (workers of a Dask cluster on any number of machines; needs "
        "webdepot[cluster]).",
        one_of("processes", "dask"),
    )
    scheduler: str = key(
        "",
        "Address of the Dask scheduler, such as tcp://batch.example.org:8786. Anyone who can connect to it "
        "can run programs on the workers.",
        check_scheduler,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkConfig:
    """The working place: files that workers on several machines share."""

    place: str = key(
        "",
        "A folder that all machines have at the same path, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME "
        "(credentials: WEBDEPOT_PLACE_WORK_ACCESS_KEY, WEBDEPOT_PLACE_WORK_SECRET_KEY). Empty means the "
        "home.",
    )
    safe_s: float = key(
        10.0,
        "Time in seconds between two checkpoints of a harvest by `webdepot harvester`. If a machine and its "
        "disk are lost, at most the requests of this time are repeated.",
        at_least(0.2),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Harvests on several machines."""

    harvesters: bool = key(
        False,
        "Offer harvests to the processes `webdepot harvester` of all machines, instead of running them where "
        "they are started. Needs [database] url and [work] place.",
    )
    lease_s: float = key(
        30.0,
        "Time in seconds after which a harvester that stopped responding counts as dead; another one "
        "continues from its last checkpoint.",
        at_least(2),
    )
    machine: str = key("", "Name of this machine in lists; empty means its host name.")

    @property
    def machine_name(self) -> str:
        return (self.machine or socket.gethostname())[:60]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsConfig:
    """Long-running work started in the portal: imports, audits, surveys, actions on many sites."""

    in_server: bool = key(
        True, "Run jobs inside `webdepot serve`. Switch it off if only `webdepot batch` should run them."
    )
    at_once: int = key(4, "Maximum number of jobs that one worker runs in parallel.", at_least(1))
    lease_s: float = key(
        30.0,
        "Time in seconds after which a worker that stopped responding counts as dead; another one repeats "
        "its jobs.",
        at_least(1),
    )
