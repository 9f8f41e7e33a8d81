"""Values that are made by the thousand a second: `valueclass` is `dataclass`, and what is frozen is so for
the type checker alone.

A frozen dataclass sets each field by a call of `object.__setattr__`, which takes three times as long as to
make a plain one. A page of a harvest makes a dozen such values with eighty fields. The type checker reads the
whole tree and sees a frozen class, so nobody changes one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as valueclass
else:
    Made = TypeVar("Made", bound=type)

    def valueclass(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[Made], Made]:
        # Equal values are one key of a dict, as those of a frozen class.
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=frozen)


__all__ = ["valueclass"]
