"""The result of one check of `webdepot doctor`."""

from dataclasses import dataclass
from typing import Literal

HealthState = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    name: str
    state: HealthState
    message: str
    remedy: str = ""
