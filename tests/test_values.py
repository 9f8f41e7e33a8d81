"""Values that are made often behave as frozen ones do, but for what the type checker forbids."""

from dataclasses import replace

import pytest

from webdepot.values import valueclass


@valueclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: int = 0


def test_equal_values_are_one_key() -> None:
    assert {Point(x=1): "found"}[Point(x=1, y=0)] == "found"
    assert Point(x=1) != Point(x=2)


def test_a_value_with_a_change_is_a_new_one() -> None:
    point = Point(x=1)
    assert replace(point, y=2) == Point(x=1, y=2)
    assert point == Point(x=1, y=0)


def test_it_has_its_fields_and_no_more() -> None:
    with pytest.raises(AttributeError):
        Point(x=1).z = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]
