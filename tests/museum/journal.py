"""A journal of verdicts in the checkout, so that a run resumes where it was cut."""

import hashlib
import json
from pathlib import Path

from tests.museum.trial import Outcome


class Journal:
    """Verdicts by name, each for what it was about."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[str, Outcome]] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                with_name = json.loads(line)
                outcome = Outcome(with_name["killer"], with_name["seconds"])
                self._known[with_name["name"]] = with_name["about"], outcome

    def known(self, name: str, about: str) -> Outcome | None:
        """Return the verdict, if it is about the same texts."""
        kept = self._known.get(name)
        return kept[1] if kept is not None and kept[0] == about else None

    def keep(self, name: str, about: str, outcome: Outcome) -> None:
        self._known[name] = about, outcome
        line = {
            "name": name,
            "about": about,
            "killer": outcome.killer,
            "seconds": outcome.seconds,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")


def digest(*texts: str) -> str:
    """Return what tells these texts from others."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
