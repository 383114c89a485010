"""Reason why a sink's target does not answer, in words for an operator."""

from dataclasses import dataclass
from typing import Final

KAFKA: Final = "Kafka"


@dataclass(frozen=True, slots=True)
class Outage:
    """A cause, as far as known, and the next step."""

    why: str
    hint: str = ""
    refused: bool = False  # may credentials that are read anew end it?
    of: str = KAFKA  # what does not answer
