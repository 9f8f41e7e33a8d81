"""Planted defects of every format are found, the files they were made from raise no alarm, and their
properties are read.
"""

import pytest
from format_defects import FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.model import Severity

SAMPLES = {name: make() for name, make in FAMILIES.items()}
ONLY_NOTED = {
    ("a.html", "id twice"),
    ("a.html", "no title"),
    ("a.html", "no document type"),
    ("a.svg", "no namespace"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_planted_defect_is_found(examiner, name):
    for planted, data in SAMPLES[name].items():
        found = examiner.examine(data, name=name, mime="", subject=name)
        grave = [each for each in found.findings if each.severity is not Severity.NOTE]
        if planted.startswith("good"):
            assert (found.validity.value in ("valid", "well-formed"), grave) == (True, []), planted
            assert found.properties, planted
        elif (name, planted) in ONLY_NOTED:
            assert (found.validity.value, len(found.findings)) == ("well-formed", 1), planted
        else:
            assert found.validity.value == "not valid", planted
            assert found.findings[0].message, planted


def test_how_many(examiner):
    """The reference finds 60 of 87."""
    planted = [
        (name, what) for name, samples in SAMPLES.items() for what in samples if not what.startswith("good")
    ]
    assert len(planted) > 160
    assert len(ONLY_NOTED) < 0.05 * len(planted)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("a.pdf", {"pages": 2, "version": "1.4", "encrypted": False, "title": "A title"}),
        ("a.png", {"width": 4, "height": 2, "colour": "palette", "bit_depth": 8}),
        ("a.wav", {"channels": 2, "sample_rate": 8000, "codec": "PCM"}),
        ("a.aiff", {"channels": 2, "sample_rate": 8000, "duration_s": 0.013}),
        ("a.mp3", {"duration_s": 0.522, "bit_rate": 128000}),
        ("a.mp4", {"duration_s": 2.0, "codecs": "video avc1", "width": 320}),
        ("a.webm", {"duration_s": 2.0, "codecs": "V_VP8", "height": 240}),
        ("a.ogg", {"codecs": "Vorbis", "sample_rate": 44100}),
        ("a.txt", {"encoding": "UTF-8", "words": 4}),
        ("a.ttf", {"glyphs": 1, "flavour": "TrueType"}),
    ],
)
def test_properties(examiner, name, facts):
    found = examiner.examine(SAMPLES[name]["good"], name=name, mime="").properties
    assert {key: found.get(key) for key in facts} == facts


@given(st.sampled_from(sorted(SAMPLES)), st.data())
@settings(max_examples=200, deadline=None)
def test_mutated_files_end_with_an_answer(examiner, name, draw):
    """Bytes changed, cut and doubled anywhere: a check may say what it likes, but never fail."""
    changed = bytearray(draw.draw(st.sampled_from(sorted(SAMPLES[name].values())))[:20_000])
    for _ in range(draw.draw(st.integers(1, 6))):
        if not changed:
            break
        at = draw.draw(st.integers(0, len(changed) - 1))
        match draw.draw(st.integers(0, 3)):
            case 0:
                changed[at] = draw.draw(st.integers(0, 255))
            case 1:
                del changed[at : at + draw.draw(st.integers(1, 50))]
            case 2:
                changed[at:at] = changed[at : at + 40]
            case _:
                changed[at : at + 4] = b"\xff\xff\xff\xff"
    found = examiner.examine(bytes(changed), name=name, mime="")
    assert not {"formats.checker-died", "formats.identify-gave-up"} & {
        each.code for each in found.findings
    }, found.findings
