"""The search server is away while a harvest is indexed: readers have its addresses, and its words follow by
themselves.
"""

import asyncio
import threading
from contextlib import closing
from urllib.parse import urlsplit

import pytest

import opensearch
from databases import configure
from ports import free_port
from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.engine.job_queue import JobState
from webdepot.errors import RemoteError
from webdepot.ports.search import TextQuery
from webdepot.services import pipeline
from webdepot.services.access import lookup
from webdepot.services.index import indexer
from webdepot.services.jobs import job_control, kinds, work
from webdepot.services.jobs.worker import Worker

URL = "https://x.example/"


def relay(port, target):
    """Pass everything on to the server, in a thread: it is back."""
    host = urlsplit(target).hostname, urlsplit(target).port
    ready, loops = threading.Event(), []

    async def copy(reader, writer):
        with closing(writer):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async def answer(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection(*host)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer), return_exceptions=True)

    async def serve():
        server = await asyncio.start_server(answer, "127.0.0.1", port)
        loops.append(asyncio.get_running_loop())
        stop = asyncio.Event()
        loops.append(stop)
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    ready.wait()
    return lambda: (loops[0].call_soon_threadsafe(loops[1].set), thread.join(10))


@pytest.mark.opensearch
def test_words_follow_by_themselves_when_the_server_is_back(home, tmp_path, monkeypatch):
    place, port = opensearch.new_place(), free_port()
    configure(
        home,
        f'[index]\nengine = "opensearch"\nopensearch_url = "http://127.0.0.1:{port}"\n'
        f'opensearch_index = "{place.name}"\n',
    )
    monkeypatch.setattr(work, "_AWAY_S", 0.1)
    write_warc(tmp_path / "a.warc.gz", {URL: b"<!doctype html><title>Mill</title><p>the windmill"})
    with Archive.open(home, agent="anna") as archive:
        reports = []
        pipeline.import_files(archive, [tmp_path / "a.warc.gz"], collection="c", on_package=reports.append)
        (report,) = reports
        assert report.package is not None and (report.captures, report.pages) == (1, 0)
        assert report.words_away.startswith(f"The search server http://127.0.0.1:{port} does not answer")
        assert lookup.find_closest(archive, URL, "2024", collection="all", reader=ANYONE).url == URL
        with pytest.raises(RemoteError, match="does not answer"):
            indexer.update(archive)  # adds no second job
        (job,) = job_control.newest(archive, kinds.INDEX)
        assert (job.state, job.by) == (JobState.WAITING, "anna")
        worker, stop = Worker(archive), threading.Event()
        thread = threading.Thread(target=worker.run, args=(stop,), kwargs={"until_idle": True})
        thread.start()
        assert job_control.wait(archive, job, at_most_s=1.0).is_open
        end_relay = relay(port, opensearch.server_urls()[0])
        try:
            assert job_control.wait(archive, job, at_most_s=120).state is JobState.DONE
            thread.join()
            assert [hit.url for hit in archive.texts.find(TextQuery(words=("windmill",))).hits] == [URL]
            assert not indexer.update(archive).failed
            archive.texts._client.write("DELETE", f"/{place.name}-*")
        finally:
            stop.set()
            end_relay()
