"""Words on OpenSearch: several writers, writers that are killed, and a server that is away. What every text
index promises is in `tests/contracts`.
"""

import http.server
import json
import threading
from itertools import pairwise

import pytest

import opensearch
from ports import free_port
from text_indexes import HISTORY, page, urls
from webdepot import query_budget
from webdepot.errors import RemoteError, TooExpensive
from webdepot.index.opensearch import words
from webdepot.index.opensearch.client import OpenSearchClient, ServerAddress
from webdepot.index.opensearch.index import OpenSearchPlace, OpenSearchTextIndex
from webdepot.index.opensearch.pages import PageStates
from webdepot.ports.search import ClosedArea, TextQuery
from webdepot.query_budget import QueryBudget


@pytest.fixture
def index(tmp_path):
    made = opensearch.new_index(tmp_path / "text")
    yield made
    made.close()


def states_in(index):
    return [
        (state.key, state.collection, state.timestamps, state.valid_from, state.valid_to, state.text)
        for state in index.scan(TextQuery())
    ]


def pages_of(number):
    """Captures of the same pages in each container; neighbours in time often have the same words."""
    return [
        page(
            f"http://example.org/{at}",
            f"20{10 + number:02d}0{1 + at % 9}01000000",
            text=f"words {(number + at) // 3}",
        )
        for at in range(12)
    ]


@pytest.mark.opensearch
def test_writers_on_the_same_pages_are_as_one(index, tmp_path):
    alone = opensearch.new_index(tmp_path / "alone")
    for number in range(8):
        alone.add(str(number), pages_of(number))
    expected = states_in(alone)
    alone.close()
    failures = []

    def write(numbers):
        writer = OpenSearchTextIndex(index._place, tmp_path / f"writer-{numbers[0]}")
        try:
            for number in numbers:
                writer.add(str(number), pages_of(number))
        except BaseException as error:
            failures.append(error)
        finally:
            writer.close()

    index.total()  # creates the indexes
    writers = [threading.Thread(target=write, args=(numbers,)) for numbers in ([0, 2, 4, 6], [7, 5, 3, 1])]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert states_in(index) == expected
    assert index.containers() == {str(number) for number in range(8)}


@pytest.mark.opensearch
@pytest.mark.parametrize("killed_in", ["_head_action", "_delete", "refresh"])
def test_a_container_whose_writer_was_killed_is_completed(index, monkeypatch, killed_in):
    """After new states were written, after heads were written, before searches may see anything."""
    index.add("a", HISTORY)
    before = states_in(index)
    more = [page(timestamp="20110101000000", text="between"), page("http://b.org/", text="old friends")]

    class KilledError(BaseException):
        pass

    def kill(*given):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(PageStates, killed_in, kill)
        with pytest.raises(KilledError):
            index.add("b", more)
    assert index.containers() == {"a"}
    index._client.write("POST", f"/{index._names.states}/_refresh")  # as another writer may
    assert index.add("b", more) == 2
    after = states_in(index)
    assert [state for state in after if state[0] == "org,b)/"] == [
        ("org,b)/", "c", ("20200101000000",), "20200101000000", "9" * 14, "old friends")
    ]
    of_page = [state for state in after if state[0] == "org,example)/"]
    assert [state[2] for state in of_page] == [
        ("20100101000000",),
        ("20110101000000",),
        ("20120101000000",),
        ("20140101000000",),
        ("20160101000000",),
    ]
    assert all(one[4] == other[3] for one, other in pairwise(of_page))
    assert len(before) == 3
    assert "between" in dict(index.words("betw", limit=5))


@pytest.mark.opensearch
def test_words_that_were_taken_out_are_not_suggested(index):
    from contracts.test_text_index_keeping import gone

    index.add("a", [page("http://a.org/", text="harbour")])
    index.add("b", [page("http://b.org/", text="harbour secret")])
    assert index.remove("b", [gone("http://b.org/", "20200101000000", "harbour secret")]) == 1
    assert list(index.words("", limit=10)) == [("harbour", 1)]


@pytest.mark.opensearch
def test_several_shards_give_the_same_words_and_pages(tmp_path):
    index = opensearch.NewIndex(opensearch.new_place(shards=3), tmp_path / "text")
    index.add("a", [page(f"http://{number}.org/", text="harbour") for number in range(20)])
    assert list(index.words("harb", limit=5)) == [("harbour", 20)]
    assert len(urls(index, "harbour")) == 20
    index.close()


@pytest.mark.opensearch
def test_closed_pages_of_every_form_of_rule(index):
    index.add("a", [page(f"http://example.org/{path}") for path in ("a", "a/b", "ab", "c?x=1")])

    def open_to(*areas):
        return sorted(url.removeprefix("http://example.org/") for url in urls(index, "words", closed=areas))

    assert open_to(ClosedArea(prefix="org,example)/a", exact=True)) == ["a/b", "ab", "c?x=1"]
    assert open_to(ClosedArea(prefix="org,example)/a")) == ["c?x=1"]
    assert open_to(ClosedArea(prefix="org,example)/a/"), ClosedArea(prefix="org,example)/c?")) == ["a", "ab"]
    assert open_to(ClosedArea(prefix="org,")) == []
    many_times = tuple(
        ClosedArea(prefix="org,example)/a", first=f"{year}0101000000", last=f"{year}1231235959")
        for year in range(1900, 2021)
    )
    assert open_to(*many_times) == ["c?x=1"]


@pytest.mark.opensearch
def test_a_spent_budget_ends_a_search(index):
    index.add("a", HISTORY)
    with query_budget.spending(QueryBudget(0.0)), pytest.raises(TooExpensive):
        index.find(TextQuery(words=("old",)))


def away(tmp_path, *urls):
    return OpenSearchTextIndex(
        OpenSearchPlace(address=ServerAddress(urls=urls), name="archive"), tmp_path / "text"
    )


def test_a_server_that_is_away_gets_one_sentence(tmp_path):
    index = away(tmp_path, f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(RemoteError, match=r"^The search server .* does not answer \(.*refused\)\. Check"):
        index.find(TextQuery(words=("x",)))
    with pytest.raises(RemoteError, match="does not answer"):
        index.clear()


@pytest.fixture
def impostor():
    """A server that answers every question with the same document."""
    answer = {"status": 200, "body": {}}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = json.dumps(answer["body"]).encode()
            self.send_response(answer["status"])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *given):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (200, {"version": {"number": "8.11.0"}}, "is Elasticsearch 8.11.0, but OpenSearch 2.19 or later"),
        (
            200,
            {"version": {"number": "2.4.0", "distribution": "opensearch"}},
            "is opensearch 2.4.0, but OpenSearch 2.19 or later",
        ),
        (200, {"hello": "world"}, "is not an OpenSearch server. Check"),
        (404, {}, "is not an OpenSearch server. Check"),
        (401, {"error": "Unauthorized"}, r"refuses the user \(Unauthorized\). Check"),
        (503, {}, "does not answer"),
    ],
)
def test_another_server_is_refused_with_one_sentence(tmp_path, impostor, status, body, sentence):
    url, answer = impostor
    answer.update(status=status, body=body)
    index = away(tmp_path, url)
    with pytest.raises(RemoteError, match=sentence):
        index.total()
    index.close()


def test_another_node_is_asked_if_one_does_not_answer(impostor):
    url, answer = impostor
    answer.update(body={"found": True})
    client = OpenSearchClient(ServerAddress(urls=(f"http://127.0.0.1:{free_port()}", url)))
    assert client.read("GET", "/") == {"found": True}
    client.close()


def test_writing_waits_for_a_server_that_returns(impostor):
    url, answer = impostor
    answer.update(status=503)
    client = OpenSearchClient(ServerAddress(urls=(url,)), patience_s=30)
    threading.Timer(0.3, lambda: answer.update(status=200, body={"acknowledged": True})).start()
    assert client.write("GET", "/") == {"acknowledged": True}
    client.close()


@pytest.mark.opensearch
def test_words_are_fetched_in_several_requests(index, monkeypatch: pytest.MonkeyPatch):
    index.add("a", [page("http://a.org/", text="harbour haven hall")])
    monkeypatch.setattr(words, "_MOST_AT_ONCE", 2)
    expected = [("hall", 1), ("harbour", 1), ("haven", 1)]
    assert list(index.words("ha", limit=10)) == expected
    assert list(index.words("ha", limit=2)) == expected[:2]
