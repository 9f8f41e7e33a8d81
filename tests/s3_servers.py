"""S3 servers on loopback: SeaweedFS, a real one with conditional puts, checksums and object lock; and rclone,
which has none of that.
"""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ports import free_port, free_ports

BIN = Path(sys.executable).parent
READY_S = 60
IDENTITIES = {
    "identities": [
        {
            "name": "keeper",
            "credentials": [{"accessKey": "keeper", "secretKey": "keeper-secret"}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        },
        {
            "name": "auditor",
            "credentials": [{"accessKey": "auditor", "secretKey": "auditor-secret"}],
            "actions": ["Read", "List"],
        },
    ]
}


@dataclass(frozen=True)
class S3Server:
    """Where a server listens, and its keeper's credentials."""

    endpoint: str
    process: subprocess.Popen[bytes]
    bucket: str = "shared"
    access_key: str = "keeper"
    secret_key: str = "keeper-secret"

    def client(self):
        import boto3
        from botocore.config import Config

        settings = Config(retries={"max_attempts": 2}, s3={"addressing_style": "path"})
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            config=settings,
        )

    def new_prefix(self) -> str:
        """A corner of the bucket that all tests share: SeaweedFS sets volumes aside for each bucket and soon
        has no more.
        """
        return f"corner/{uuid.uuid4().hex[:12]}"

    def new_bucket(self) -> str:
        name = f"depot-{uuid.uuid4().hex[:12]}"
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()
        return name

    def new_address(self) -> str:
        return f"s3://{self.bucket}/{self.new_prefix()}?endpoint={self.endpoint}"


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("seaweed")
    (folder / "s3.json").write_text(json.dumps(IDENTITIES))
    (folder / "data").mkdir()
    master, volume, filer, s3 = free_ports(4, neighbour=10_000)
    arguments = [
        "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}", f"-volume.port={volume}",
        "-volume.max=40", "-master.volumeSizeLimitMB=64", "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}",
        f"-s3.config={folder / 's3.json'}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [BIN / "weed", *arguments], cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
    server = S3Server(endpoint=f"http://127.0.0.1:{s3}", process=process)
    try:
        _wait(server, folder / "log")
        yield server
    finally:
        _end(process)


@pytest.fixture(scope="session")
def rclone(tmp_path_factory) -> Iterator[S3Server]:
    """A server that ignores `If-None-Match`: what it is told to create, it writes over."""
    folder = tmp_path_factory.mktemp("rclone")
    (folder / "data").mkdir()
    port = free_port()
    arguments = [
        "serve",
        "s3",
        "--addr",
        f"127.0.0.1:{port}",
        "--auth-key",
        "keeper,keeper-secret",
        "--config",
        str(folder / "none.conf"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [BIN / "rclone", *arguments, str(folder / "data")], stdout=log, stderr=log, start_new_session=True
        )
    server = S3Server(endpoint=f"http://127.0.0.1:{port}", process=process)
    try:
        _wait(server, folder / "log")
        yield server
    finally:
        _end(process)


def _wait(server: S3Server, log: Path) -> None:
    """Until a bucket can be made: both open their port before they can do anything."""
    until = time.monotonic() + READY_S
    while True:
        try:
            client = server.client()
            client.create_bucket(Bucket=server.bucket)
            client.put_object(Bucket=server.bucket, Key="ready", Body=b"x")
            client.close()
            return
        except Exception:
            if time.monotonic() > until or server.process.poll() is not None:
                raise AssertionError(log.read_text(errors="replace")[-3000:]) from None
            time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)
