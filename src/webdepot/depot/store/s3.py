"""S3-compatible object storage as a place of the depot, through obstore (Rust `object_store`).

A put of less than `WHOLE_BYTES` is one request with `If-None-Match: *` and its SHA-256; servers that support
these refuse it if the key exists or a byte was lost. Larger files are uploaded in parts, which this library
can only do unconditionally: `put` checks first that the key does not exist, and the writer of packages reads
everything back and publishes with a small, conditional put (see `ocfl/objects`). Some servers do not support
conditional writes; `refuses_overwriting` finds out.

Lists may be stale on some servers, so nothing that decides about content uses one: keys come from
inventories. The library retries temporary failures for `RETRY_S`; then `RemoteError` is raised, which means
that the place cannot be reached, not that its content is wrong.
"""

import io
import itertools
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store as Bucket

from webdepot.depot.store.keys import is_key, steps_of
from webdepot.errors import Conflict, NotFound, NotPermitted, RemoteError, WebdepotError

WHOLE_BYTES = 16 << 20
PART_BYTES = 16 << 20
PARTS_AT_ONCE = 3
READ_BYTES = 1 << 20
RETRY_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAddress:
    """Where a bucket is; without secrets, which come from the environment."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = "us-east-1"


class S3Store:
    """An `ObjectStore` in a bucket, below a prefix. Any thread or process may use it at the same time."""

    def __init__(self, address: BucketAddress, *, access_key: str = "", secret_key: str = "") -> None:
        self.name = f"s3://{address.bucket}/{address.prefix}".rstrip("/")
        options: dict[str, Any] = {
            "region": address.region,
            "checksum_algorithm": "SHA256",
            "virtual_hosted_style_request": False,
        }
        if address.endpoint:
            options["endpoint"] = address.endpoint
        # Without a key the library looks where every S3 tool does: environment, profile, role of the machine.
        if access_key:
            options |= {"access_key_id": access_key, "secret_access_key": secret_key}
        self._bucket = Bucket(
            address.bucket,
            prefix=address.prefix or None,
            client_options={
                "allow_http": address.endpoint.startswith("http:"),
                "connect_timeout": timedelta(seconds=5),
                "timeout": timedelta(seconds=120),
            },
            retry_config={"max_retries": 6, "retry_timeout": timedelta(seconds=RETRY_S)},
            **options,
        )

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        steps_of(key)
        if not overwrite and self.size(key) is not None:
            raise _exists(self.name, key)
        counted = _Counted(source)
        first = counted.take(WHOLE_BYTES)
        with self._remote_errors(key):
            if len(first) < WHOLE_BYTES:
                obstore.put(
                    self._bucket, key, first, mode="overwrite" if overwrite else "create", use_multipart=False
                )
            else:
                # If the iterator raises, obstore removes the uploaded parts and reports the error.
                parts = itertools.chain([first], counted)
                obstore.put(self._bucket, key, parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        return counted.size_bytes

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        steps_of(key)
        size = self.size(key)
        if size is None:
            raise NotFound(f"The place {self.name} has no file {key}. Run: webdepot depot audit")
        stop = size if length is None else min(size, offset + length)
        if offset >= stop:
            return io.BytesIO(b"")
        chunks = self._iter(key, offset, stop, is_whole=(offset, stop) == (0, size))
        return cast(BinaryIO, io.BufferedReader(_Chunks(chunks), READ_BYTES))

    def size(self, key: str) -> int | None:
        steps_of(key)
        try:
            with self._remote_errors(key):
                return int(obstore.head(self._bucket, key)["size"])
        except NotFound:
            return None

    def keys(self, prefix: str = "") -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        with self._remote_errors(prefix):
            for batch in obstore.list(self._bucket, folder or None):
                for entry in batch:
                    key = entry["path"]
                    if key.startswith(prefix) and is_key(key):
                        yield key

    def delete(self, key: str) -> None:
        steps_of(key)
        try:
            with self._remote_errors(key):
                obstore.delete(self._bucket, key)
        except NotFound:
            return

    def local_path(self, key: str) -> Path | None:
        return None

    def _iter(self, key: str, start: int, stop: int, *, is_whole: bool) -> Iterator[bytes]:
        """The bytes from start to stop. If a server ignores the range and sends everything, the rest is
        skipped.
        """
        with self._remote_errors(key):
            try:
                response = (
                    obstore.get(self._bucket, key)
                    if is_whole
                    else obstore.get(self._bucket, key, options={"range": (start, stop)})
                )
                at = start
            except BaseError as error:
                if is_whole or "non-partial" not in str(error):
                    raise
                response, at = obstore.get(self._bucket, key), 0
            for chunk in response.stream(READ_BYTES):
                data = bytes(chunk)
                wanted = data[max(start - at, 0) : stop - at]
                at += len(data)
                if wanted:
                    yield wanted
                if at >= stop:
                    return

    @contextmanager
    def _remote_errors(self, key: str) -> Iterator[None]:
        """Raise errors of the library as ours."""
        try:
            yield
        except WebdepotError:
            raise
        except AlreadyExistsError:
            raise _exists(self.name, key) from None
        except FileNotFoundError:
            raise NotFound(f"The place {self.name} has no file {key}. Run: webdepot depot audit") from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            what = key or "the list of its files"
            raise NotPermitted(
                f"The place {self.name} denies access to {what}: {_first_line(error)}. "
                "Check its credentials and permissions."
            ) from error
        except BaseError as error:
            raise RemoteError(
                f"The place {self.name} does not respond (request for {key or 'its files'}): "
                f"{_first_line(error)}",
                retry=True,
            ) from error


def refuses_overwriting(store: S3Store) -> bool:
    """Whether the server refuses to overwrite keys; tested with a small file that is deleted afterwards."""
    key = f"probe-{secrets.token_hex(8)}"
    with store._remote_errors(key):
        obstore.put(store._bucket, key, b"first", mode="create", use_multipart=False)
        try:
            obstore.put(store._bucket, key, b"second", mode="create", use_multipart=False)
        except (AlreadyExistsError, FileExistsError):
            return True
        finally:
            obstore.delete(store._bucket, key)
    return False


def _exists(place: str, key: str) -> Conflict:
    return Conflict(f"The place {place} already has {key}. Kept files are never overwritten.")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300].rstrip(".")


class _Counted:
    """A source read in chunks, with a count of the bytes read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._source.read(READ_BYTES):
            self.size_bytes += len(chunk)
            yield chunk

    def take(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end."""
        chunks: list[bytes] = []
        while size and (chunk := self._source.read(min(size, READ_BYTES))):
            chunks.append(chunk)
            size -= len(chunk)
            self.size_bytes += len(chunk)
        return b"".join(chunks)


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        data = self._rest[: len(buffer)]
        buffer[: len(data)] = data
        self._rest = self._rest[len(data) :]
        return len(data)
