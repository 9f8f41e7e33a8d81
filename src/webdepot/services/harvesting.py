"""Running a harvest: from seeds to sealed containers, safe against a crash at any moment.

    harvests/ID/
      lock                     held while a process works on it
      frontier/                the life of every URI
      crawl.log, crawl.jsonl   one line per page
      warc/                    containers; `.open` while written

A checkpoint makes containers and logs durable, then commits the frontier with their sizes. After a crash `resume` cuts all
of them back to the last checkpoint: nothing acknowledged is lost, nothing is stored twice.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from webdepot.archive import VERSION, Archive
from webdepot.container import recovery, revisit, shelf
from webdepot.container.records import about_visit, from_visit, payload_digest
from webdepot.container.writer import ContainerWriter, Sealed
from webdepot.errors import Conflict, NoSpace
from webdepot.harvest import crawl, runs
from webdepot.harvest.crawl import CrawlProgress, CrawlResult, CrawlSettings, Kept
from webdepot.harvest.fetch_http import CurlFetcher, FetchLimits
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.log import CrawlLog
from webdepot.model import Candidate, Container, ContainerState, Harvest, HarvestId, HarvestKind, HarvestState, Visit
from webdepot.ports import CaptureIndex
from webdepot.provenance import Event, Outcome, append
from webdepot.services import selecting
from webdepot.url import Url, from_typed, host_of

Progress = Callable[[CrawlProgress], None]
