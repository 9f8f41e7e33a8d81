"""What is special to a folder store: files without a name, disk errors, links."""

import errno
import io
import os
import resource
import subprocess
import sys
import textwrap

import pytest

from webdepot.depot.store import folder
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import Conflict, InputError, NoSpace


def test_without_nameless_files(tmp_path, monkeypatch):
    """File systems such as NFS have no O_TMPFILE."""
    monkeypatch.delattr(os, "O_TMPFILE")
    store = FolderStore(tmp_path)
    store.put("a/b", io.BytesIO(b"one"))
    with pytest.raises(Conflict):
        store.put("a/b", io.BytesIO(b"two"))
    store.put("a/b", io.BytesIO(b"three"), overwrite=True)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert (tmp_path / "a/b").read_bytes() == b"three"


def test_unfinished_files_are_not_listed(tmp_path):
    store = FolderStore(tmp_path)
    store.put("a/b", io.BytesIO(b"one"))
    (tmp_path / "a" / f"{folder.UNFINISHED}0123").write_bytes(b"half")
    assert list(store.keys()) == ["a/b"]


def test_a_disk_that_takes_no_more(tmp_path):
    """A limit on file sizes simulates a full disk: the kernel refuses in the middle of the write."""
    script = f"""
        import io, resource
        from pathlib import Path
        from webdepot.depot.store.folder import FolderStore
        from webdepot.errors import NoSpace
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, {resource.RLIM_INFINITY}))
        store = FolderStore(Path({str(tmp_path)!r}))
        store.put("small", io.BytesIO(b"x" * 1000))
        try:
            store.put("large", io.BytesIO(b"x" * 5_000_000))
        except NoSpace as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert "large was not written, and nothing was lost" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_refusals_of_the_system_become_words(tmp_path, code):
    class Refusing(io.RawIOBase):
        def read(self, size=-1):
            raise OSError(code, os.strerror(code))

    with pytest.raises(NoSpace, match="nothing was lost"):
        FolderStore(tmp_path).put("key", Refusing())


def test_links_that_lead_out_are_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "door").symlink_to(outside)
    with pytest.raises(InputError, match="symbolic link"):
        FolderStore(root).put("door/x", io.BytesIO(b"x"))
    assert list(outside.iterdir()) == []


def test_a_dangling_link_counts_as_taken(tmp_path):
    (tmp_path / "key").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Conflict):
        FolderStore(tmp_path).put("key", io.BytesIO(b"x"))
    assert not (tmp_path / "nowhere").exists()
