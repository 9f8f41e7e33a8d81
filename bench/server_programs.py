"""Servers for tests and benchmarks: programs that end with the block, and some that an archive never starts in this way."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from webdepot import durable
from webdepot.cluster import dask_programs, readiness, seaweedfs
from webdepot.cluster.free_ports import free_ports
from webdepot.cluster.processes import ProcessFolder, Program
from webdepot.cluster.seaweedfs import S3Key

WITHOUT_FSYNC = ("-c", "fsync=off", "-c", "shared_buffers=16MB")
"""Options of PostgreSQL: it does not wait for the disk, so a power cut may lose data."""


@contextmanager
def running(folder: Path, *programs: Program, at_most_s: float = 60) -> Iterator[ProcessFolder]:
    """Programs that end with the block. All are ready when it begins."""
    processes = ProcessFolder(folder)
    try:
        for program in programs:
            processes.start(program)
        for program in programs:
            processes.wait(program, at_most_s=at_most_s)
        yield processes
    finally:
        for program in reversed(programs):
            processes.kill(program.name)


def free_port(*, udp: bool = False) -> int:
    (port,) = free_ports(1, udp=udp)
    return port


def dask_worker(
    number: int,
    scheduler_port: int,
    folder: Path,
    *,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Program:
    """A process that runs workers, and restarts those that die."""
    places = ("--local-directory", str(folder), "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard")
    address = dask_programs.address_of(scheduler_port)
    return Program(
        name=f"dask-worker-{number}",
        command=[sys.executable, "-m", "dask", "worker", address, *places, *options],
        environment=environment or {},
    )


def single_seaweedfs(folder: Path, ports: Sequence[int], keys: Sequence[S3Key]) -> Program:
    """SeaweedFS in one process. The last of the four ports is that of S3."""
    master, volume, filer, s3 = ports
    durable.make_folders(folder / "data")
    seaweedfs.write_keys(folder / "s3.json", keys)
    options = [
        f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}",
        f"-volume.port={volume}", "-volume.max=40", "-master.volumeSizeLimitMB=64", "-filer",
        f"-filer.port={filer}", "-s3", *seaweedfs.s3_options("-s3.", s3, folder / "s3.json"),
    ]  # fmt: skip
    return Program(
        name="seaweedfs",
        command=[str(seaweedfs.find_weed()), "server", *options],
        folder=folder,
        address=f"http://127.0.0.1:{s3}",
        # It listens long before it can store anything.
        is_ready=lambda: all(readiness.answers(*each) for each in ((s3, "/status"), (master, "/dir/assign"))),
    )
