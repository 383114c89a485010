"""The mutants that live on, each with the reason."""

import tomllib
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("survivors.toml")


def explained(module: str) -> dict[str, str]:
    """Return the reasons of a module, by place."""
    if not FILE.exists():
        return {}
    reasons = tomllib.loads(FILE.read_text("utf-8")).get(module, {})
    return {str(place): str(reason) for place, reason in reasons.items()}
