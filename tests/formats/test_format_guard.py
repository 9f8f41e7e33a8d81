"""Guards: many files at a time, one of which hangs or kills; nothing left behind, whoever is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from format_samples import HTML, image, slow_zip

from webdepot.formats.examine import Exhibit, FileExaminer
from webdepot.formats.validation_result import Validity
from webdepot.guard import scratch
from webdepot.guard.batch import Batch
from webdepot.guard.process import Guard, GuardFailure, Limits

PNG = image("PNG")


def exhibit(number, payload, name):
    return Exhibit(payload=payload, name=name, mime="", subject=str(number))


def test_one_that_does_not_end_costs_only_itself():
    slow = slow_zip()
    files = [
        (HTML, "a.html"),
        (PNG, "a.png"),
        (slow, "a.zip"),
        (b"a { color: red }", "a.css"),
        (slow + b"\n", "b.zip"),
        (PNG, "b.png"),
    ]
    with FileExaminer(limits=Limits(time_s=0.2)) as examiner:
        found = examiner.examine_many([exhibit(number, *file) for number, file in enumerate(files)])
    assert [each.format.puid for each in found] == [
        "fmt/471",
        "fmt/11",
        "x-fmt/263",
        "x-fmt/224",
        "x-fmt/263",
        "fmt/11",
    ]
    valid, given_up = Validity.VALID, Validity.NOT_CHECKED
    assert [each.validity for each in found] == [valid, valid, given_up, valid, given_up, valid]
    assert [each.code for each in found[2].findings] == ["formats.gave-up-time"]
    assert found[2].findings[0].subject == "2"
    assert found[3].findings == []


def slow_guard():
    environment = {"PYTHONPATH": str(Path(__file__).parent)}
    return Guard("slow_child", limits=Limits(time_s=0.2), environment=environment, several=True)


def numbered(*numbers, endless=()):
    return [{"number": number, "endless": number in endless} for number in numbers]


def told(found):
    return [each.reason if isinstance(each, GuardFailure) else each["number"] for each in found]


def test_while_files_are_checked_somebody_looks_after_the_other_child(monkeypatch):
    looks = []
    slow = slow_zip()
    with FileExaminer(limits=Limits(time_s=0.3)) as examiner:
        examiner.examine(HTML, name="a.html", mime="")
        monkeypatch.setattr(examiner._identifying, "look", lambda: looks.append(examiner._identifying.pid))
        begun = [examiner.begin([exhibit(0, slow, "a.zip")]), examiner.begin([exhibit(1, PNG, "a.png")])]
        found = [examiner.end(each)[0] for each in begun]
    assert looks and all(looks)
    assert [each.format.puid for each in found] == ["x-fmt/263", "fmt/11"]


def test_one_of_several_looked_at_together_is_found_out():
    questions = numbered(*range(10), endless=(4, 8))
    with Batch([b"x"]) as batch, slow_guard() as guard:
        found = guard.ask_many(questions, batch.descriptor)
        again = guard.ask_many(questions[:4], batch.descriptor)
    assert told(found) == [0, 1, 2, 3, "gave-up-time", 5, 6, 7, "gave-up-time", 9]
    assert all(each["several"] for each in again)


def test_the_next_questions_wait_with_the_child_and_outlive_it():
    with Batch([b"x"]) as batch, slow_guard() as guard:
        sound = [guard.begin(numbered(first, first + 1), batch.descriptor) for first in (0, 2)]
        assert [told(guard.end(asked)) for asked in sound] == [[0, 1], [2, 3]]
        first_child = guard.pid
        bad = guard.begin(numbered(4, 5, endless=(5,)), batch.descriptor)
        behind = [guard.begin(numbered(first, first + 1), batch.descriptor) for first in (6, 8)]
        assert told(guard.end(bad)) == [4, "gave-up-time"]
        found = [guard.end(asked) for asked in behind]
        assert [told(answers) for answers in found] == [[6, 7], [8, 9]] and guard.pid != first_child
        assert all(answer["several"] for answers in found for answer in answers)  # nobody suspects them


@pytest.mark.parametrize("endless", [(0,), (1, 3), (2,), ()])
def test_answers_belong_to_their_questions_whoever_dies_between(endless):
    with Batch([b"x"]) as batch, slow_guard() as guard:
        begun = [
            guard.begin(numbered(number, number + 100, endless=endless), batch.descriptor)
            for number in (0, 1)
        ]
        found = []
        for number in range(2, 7):
            found.append(told(guard.end(begun.pop(0))))
            if number == 4:
                os.kill(guard.pid, signal.SIGKILL)
            begun.append(guard.begin(numbered(number, number + 100, endless=endless), batch.descriptor))
        found += [told(guard.end(asked)) for asked in begun]
    assert found == [["gave-up-time" if number in endless else number, number + 100] for number in range(7)]


def test_questions_sent_to_a_dead_child_are_answered_by_the_next():
    with Batch([b"x"]) as batch, slow_guard() as guard:
        guard.ask_many(numbered(0), batch.descriptor)
        os.kill(guard.pid, signal.SIGKILL)
        asked = [guard.begin(numbered(first, first + 1), batch.descriptor) for first in (1, 3)]
        assert [told(guard.end(each)) for each in asked] == [[1, 2], [3, 4]]


def test_a_child_that_nobody_waits_for_takes_no_more_memory_than_it_may():
    with Batch([b"x"]) as batch, slow_guard() as guard:
        guard.ask_many(numbered(0), batch.descriptor)
        guard.look()
        assert guard.pid
        asked = guard.begin([{**numbered(1)[0], "hungry": 300 << 20}], batch.descriptor)
        behind = guard.begin(numbered(2), batch.descriptor)
        deadline = time.monotonic() + 30
        while guard.pid and time.monotonic() < deadline:
            guard.look()
            time.sleep(0.01)
        assert not guard.pid
        assert told(guard.end(asked)) == ["gave-up-memory"] and told(guard.end(behind)) == [2]


def test_a_file_is_not_accused_of_the_memory_that_others_left():
    # Each is under the limit alone. The second takes long enough to be looked at.
    questions = [{**each, "kept": 100 << 20, "sleep_s": 0.3} for each in numbered(0, 1, 2)]
    with Batch([b"x"]) as batch, slow_guard() as guard:
        assert [told(guard.ask_many([each], batch.descriptor)) for each in questions] == [[0], [1], [2]]
        assert told(guard.ask_many(questions, batch.descriptor)) == [0, 1, 2]


def test_many_answers_are_as_one_by_one(examiner):
    files = [exhibit(number, HTML + b"<p>%d</p>" % number, "a.html") for number in range(300)]
    together = examiner.examine_many(files)
    assert len(together) == len(files)
    assert together[7] == examiner.examine(files[7].payload, name="a.html", mime="", subject="7")


def test_nothing_is_left_when_a_child_is_killed():
    with FileExaminer() as examiner:
        examiner.examine(HTML, name="a.html", mime="")
        folder = examiner._identifying._scratch.path
        assert list(folder.glob("*/*.html"))
        os.kill(examiner._identifying.pid, signal.SIGKILL)
        os.waitid(os.P_PID, examiner._identifying.pid, os.WEXITED | os.WNOWAIT)
        assert examiner.examine(HTML, name="a.html", mime="").findings == []
        assert not folder.exists()
        assert examiner.examine(PNG, name="a.png", mime="").format.puid == "fmt/11"
        folder = examiner._identifying._scratch.path
    assert not folder.exists()


def test_nothing_is_left_when_the_parent_is_killed():
    program = (
        "import time\nfrom webdepot.formats.examine import FileExaminer\nexaminer = FileExaminer()\n"
        "examiner.examine(b'<html></html>', name='a.html', mime='')\n"
        "print(examiner._identifying._scratch.path, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        folder = Path(parent.stdout.readline().decode().strip())
        assert list(folder.glob("*/*.html"))
        parent.kill()
    deadline = time.monotonic() + 30
    while any(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(folder.iterdir())
    os.utime(folder, (1, 1))
    scratch._sweep.cache_clear()
    scratch._sweep()
    assert not folder.exists()


def test_what_a_killed_pair_left_is_swept_away(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "_MEMORY", tmp_path)
    old, held = tmp_path / "webdepot-guard-old", scratch.Scratch()
    old.mkdir()
    (old / "payload.html").symlink_to("/proc/self/fd/9")
    for path in (old, held.path):
        os.utime(path, (1, 1))
    scratch._sweep.cache_clear()
    other = scratch.Scratch()
    assert sorted(tmp_path.iterdir()) == sorted((held.path, other.path))
    held.close()
    other.close()
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_asked_is_forgotten():
    with Batch([b"x"]) as batch, Guard("there_is_no_such_module") as guard:
        with pytest.raises(ChildProcessError, match="webdepot doctor"):
            guard.begin(numbered(0), batch.descriptor)
        assert guard._begun == []
