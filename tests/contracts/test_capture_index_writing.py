"""The contract of `CaptureIndex`, run on every implementation: containers are added, replaced and removed, by
several writers and while others read.
"""

import threading
from contextlib import closing

import pytest

from capture_indexes import ENGINES, capture, empty, find_digest
from webdepot.digest import sha1
from webdepot.model import RecordKind


@pytest.fixture(params=ENGINES)
def index(request, tmp_path):
    with closing(empty(request.param, request, tmp_path)) as made:
        yield made


def test_captures_of_a_container_and_what_it_alone_has(index):
    both = [capture(body=b"both"), capture("http://b.org/", body=b"alone", offset=1)]
    index.add("a.warc.gz", both, collection="one")
    again = capture(timestamp="20210101000000", container="b.warc.gz", body=b"both")
    repeated = capture(
        "http://b.org/",
        "20220101000000",
        container="b.warc.gz",
        offset=1,
        body=b"alone",
        kind=RecordKind.REVISIT,
    )
    index.add("b.warc.gz", [again, repeated], collection="two")
    assert list(index.of_container("a.warc.gz")) == [("one", found) for found in both]
    assert list(index.of_container("unknown")) == []
    assert (index.only_in("a.warc.gz"), index.only_in("b.warc.gz")) == ([str(sha1(b"alone"))], [])


def test_a_replaced_capture_is_not_a_version_but_still_there(index):
    error, other = capture(status=503, body=b"later"), capture(timestamp="20200102000000", offset=5)
    better = capture(timestamp="20200103000000", container="patch.warc.gz", body=b"whole")
    index.add("a.warc.gz", [error, other], collection="one")
    index.add("patch.warc.gz", [better], collection="one")
    index.replace([error])
    assert [(one.timestamp, one.replaced) for one in index.versions(error.key)] == [
        ("20200101000000", True),
        ("20200102000000", False),
        ("20200103000000", False),
    ]
    assert [tally.count for tally in index.tally(error.key, digits=0)] == [2]
    assert [tally.count for tally in index.tally(error.key, digits=8, changes=True)] == [1, 1]
    assert find_digest(index, str(sha1(b"later")), error.url).replaced
    index.add("a.warc.gz", [error, other], collection="one")
    assert not any(one.replaced for one in index.versions(error.key))


def test_adding_a_container_again_replaces_it(index):
    index.add("a.warc.gz", [capture(), capture("http://gone.org/", offset=1)], collection="c")
    index.add("b.warc.gz", [capture(container="b.warc.gz")], collection="c")
    assert index.add("a.warc.gz", [capture(status=404)], collection="d") == 1
    assert [(found.location.container, found.status) for found in index.versions("org,example)/")] == [
        ("a.warc.gz", 404),
        ("b.warc.gz", 200),
    ]
    assert list(index.scan("org,gone)", "org,gone*")) == []
    assert index.count("org,example)/", collection="c") == index.count("org,example)/", collection="d") == 1
    index.remove("a.warc.gz")
    assert list(index.containers()) == [("b.warc.gz", 1)]
    assert index.total() == 1


def test_a_container_without_captures_is_known(index):
    index.add("empty.warc.gz", [], collection="c")
    assert list(index.containers()) == [("empty.warc.gz", 0)]


def test_a_record_named_twice_is_one_capture(index):
    pages = [capture(f"http://{number}.org/", offset=number) for number in range(5)]
    assert (
        index.add("a.warc.gz", [*pages, capture("http://3.org/", offset=3, status=404)], collection="c") == 5
    )
    assert [one.status for one in index.scan("org,3)", "org,3*")] == [404]
    assert (index.total(), dict(index.years())) == (5, {2020: 5})


def test_writers_of_several_containers_and_of_the_same_one_do_not_disturb_each_other(index):
    failures: list = []

    def write(writer):
        try:
            for number in range(6):
                for name in (f"own{writer}.warc.gz", "shared.warc.gz"):
                    pages = [
                        capture(f"http://{at}.org/", f"20{10 + at % 4}0101000000", container=name, offset=at)
                        for at in range(5 + number)
                    ]
                    index.add(name, pages, collection=f"c{(writer + number) % 2}")
                    if number == 3:
                        index.remove(name)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert dict(index.containers()) == dict.fromkeys(
        ["shared.warc.gz", *(f"own{n}.warc.gz" for n in range(4))], 10
    )
    assert index.total() == sum(index.years().values()) == len(list(index.scan("", "\U0010ffff"))) == 50
    assert sum(index.years("c0").values()) + sum(index.years("c1").values()) == 50


def test_a_failure_in_the_middle_leaves_the_index_as_it_was(index):
    index.add("a.warc.gz", [capture()], collection="c")

    def broken():
        yield capture(status=404)
        raise ValueError("the container ends here")

    with pytest.raises(ValueError, match="ends here"):
        index.add("a.warc.gz", broken(), collection="d")
    assert index.first("org,example)/").status == 200
    assert index.count("org,example)/", collection="c") == 1
    assert index.add("a.warc.gz", [capture(status=404)], collection="d") == 1


def test_captures_are_counted_by_year_and_collection(index):
    old, new = capture(timestamp="20031231235959"), capture(timestamp="20040101000000", offset=1)
    index.add("a.warc.gz", [old, new], collection="one")
    index.add(
        "b.warc.gz", [capture("http://b.org/", "20040101000000", container="b.warc.gz")], collection="two"
    )
    assert dict(index.years()) == {2003: 1, 2004: 2}
    assert dict(index.years("two")) == {2004: 1}
    assert dict(index.years("three")) == {}
    index.add("a.warc.gz", [new], collection="two")  # added again, in another collection
    assert dict(index.years("one")) == {}
    assert dict(index.years("two")) == dict(index.years()) == {2004: 2}
    index.remove("b.warc.gz")
    assert dict(index.years()) == {2004: 1}


def test_an_iterator_survives_writing_and_other_threads(index):
    index.add(
        "a.warc.gz",
        [
            capture(timestamp=f"202001010{at // 600:01d}{at % 600 // 60:02d}{at % 60:02d}", offset=at)
            for at in range(1500)
        ],
        collection="c",
    )
    half_read = index.versions("org,example)/")
    first = next(half_read)
    index.add("b.warc.gz", [capture("http://b.org/", container="b.warc.gz")], collection="c")
    rest: list = []
    thread = threading.Thread(target=lambda: rest.extend(half_read))
    thread.start()
    thread.join()
    assert len([first, *rest]) == 1500


def test_threads_read_while_one_writes(index):
    index.add("0.warc.gz", [capture(container="0.warc.gz")], collection="c")
    failures: list = []
    done = threading.Event()

    def read():
        try:
            while not done.is_set():
                assert index.closest("org,example)/", "2020") is not None
                # A container is there with all of its captures or not at all.
                assert index.total() % 10 == 1
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(1, 20):
        name = f"{number}.warc.gz"
        index.add(
            name,
            [capture(f"http://{number}.org/{at}", container=name, offset=at) for at in range(10)],
            collection="c",
        )
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
