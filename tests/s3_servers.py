"""S3 servers on loopback: SeaweedFS, a real one with conditional puts, checksums and object lock; and rclone,
which has none of that.
"""

import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.server_programs import running as running_programs
from bench.server_programs import single_seaweedfs

from ports import free_port, free_ports
from webdepot.cluster import readiness, seaweedfs
from webdepot.cluster.processes import Program
from webdepot.cluster.seaweedfs import S3Key

BIN = Path(sys.executable).parent
KEYS = (
    S3Key(name="keeper", secret="keeper-secret"),
    S3Key(name="auditor", secret="auditor-secret", may_write=False),
)


@dataclass(frozen=True)
class S3Server:
    """Where a server listens, and its keeper's credentials."""

    endpoint: str
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
        self.create_bucket(name)
        return name

    def create_bucket(self, name: str) -> None:
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()

    def new_address(self) -> str:
        return f"s3://{self.bucket}/{self.new_prefix()}?endpoint={self.endpoint}"


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("seaweed")
    program = single_seaweedfs(folder, free_ports(4, neighbour=seaweedfs.GRPC), KEYS)
    with running_programs(folder, program):
        server = S3Server(endpoint=program.address)
        server.create_bucket(server.bucket)
        yield server


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
    program = Program(
        name="rclone",
        command=[str(BIN / "rclone"), *arguments, str(folder / "data")],
        is_ready=lambda: readiness.accepts(port),
    )
    with running_programs(folder, program):
        server = S3Server(endpoint=f"http://127.0.0.1:{port}")
        server.create_bucket(server.bucket)
        yield server
