"""State tables: possible steps, refused steps, and the generated drawing."""

from enum import StrEnum

import pytest

from webdepot.errors import Conflict
from webdepot.states import Machine, Step, drawn


class Lamp(StrEnum):
    OFF = "off"
    ON = "on"
    BROKEN = "broken"


LAMP = Machine(
    noun="lamp",
    steps=(
        Step(act="hang", before=(), after=Lamp.OFF, meaning="It hangs."),
        Step(act="light", before=(Lamp.OFF,), after=Lamp.ON, meaning="It burns."),
        Step(act="break", before=(Lamp.OFF, Lamp.ON), after=Lamp.BROKEN, meaning="Alas."),
    ),
)


def test_a_step_in_the_table_is_taken():
    assert LAMP.after(None, "hang", "Lamp 1") is Lamp.OFF
    assert LAMP.after(Lamp.OFF, "light", "Lamp 1") is Lamp.ON
    assert list(LAMP.acts(Lamp.OFF)) == ["light", "break"]


def test_a_step_without_a_row_is_refused_with_a_message():
    with pytest.raises(
        Conflict,
        match=r"Lamp 1: the step 'light' is not possible in the state 'on'. Required state: off. Possible now: break.",
    ):
        LAMP.after(Lamp.ON, "light", "Lamp 1")
    with pytest.raises(Conflict, match=r"in the state 'broken'\. Required state: off or on\."):
        LAMP.after(Lamp.BROKEN, "break", "Lamp 1")
    with pytest.raises(Conflict, match="no step 'eat'"):
        LAMP.after(Lamp.ON, "eat", "Lamp 1")
    with pytest.raises(Conflict, match="It is possible only for a new one"):
        LAMP.after(Lamp.ON, "hang", "Lamp 1")


def test_the_drawing_has_every_row():
    text = "\n".join(drawn(LAMP))
    assert (
        "[*] --> off: hang" in text
        and "on --> broken: break" in text
        and "| light | off | on | It burns. |" in text
    )
