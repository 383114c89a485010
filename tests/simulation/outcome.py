"""How a schedule went."""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """How a schedule went."""

    violation: str = ""
    stopped: str = ""  # the error that an edit led to
    digest: int = 0
    lives: int = 0
    detached: int = 0
    records: int = 0
    repeated: int = 0
    calls: dict[str, int] = field(default_factory=dict)
