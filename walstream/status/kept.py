"""What the state folder says of a polled source, whether something runs or not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from walstream.errors import WalstreamError


@dataclass(frozen=True, slots=True)
class Kept:
    """Empty before the first poll."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # tables that are not configured any more
    error: Mapping[str, Any] | None = None  # the last one
    problem: WalstreamError | None = None  # why the folder tells no more
