"""A journal in the checkout: sites that were seen, strikes that were made."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

HELD, VIOLATED, ABSENT = "held", "violated", "absent"


@dataclass(frozen=True, slots=True)
class Entry:
    """What came of one strike."""

    scenario: str
    version: int
    name: str  # of the strike
    kills: bool
    outcome: str  # it held, was violated, or the site was absent from this run
    said: str
    seconds: float
    code: str  # the state of the code


class Journal:
    """Lines of JSON; the last one about a strike counts."""

    def __init__(self, path: Path, code: str) -> None:
        self.code: Final = code
        self._path = path
        self._sites: dict[tuple[str, int], tuple[str, dict[str, int]]] = {}
        self._entries: dict[tuple[str, int, str], Entry] = {}
        text = path.read_text("utf-8") if path.exists() else ""
        for line in text.splitlines():
            self._take(orjson.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "sites" in line:
            about = line["scenario"], line["version"]
            self._sites[about] = line["code"], line["sites"]
        else:
            entry = Entry(**line)
            self._entries[entry.scenario, entry.version, entry.name] = entry

    def sites(self, scenario: str, version: int) -> Mapping[str, int] | None:
        """Return what this code's run of the scenario called; None: not known."""
        code, found = self._sites.get((scenario, version), ("", {}))
        return found if code == self.code else None

    def keep_sites(self, scenario: str, version: int, sites: Mapping[str, int]) -> None:
        """Keep how often each site was called."""
        line = {
            "scenario": scenario,
            "version": version,
            "sites": dict(sites),
            "code": self.code,
        }
        self._add(line)

    def held(self, scenario: str, version: int, name: str) -> bool:
        """Tell whether it need not be made again, of whatever code it was."""
        found = self._entries.get((scenario, version, name))
        return found is not None and found.outcome != VIOLATED

    def keep(self, entry: Entry) -> None:
        self._add(asdict(entry))

    def _add(self, line: dict[str, Any]) -> None:
        self._take(line)
        with self._path.open("ab") as file:
            file.write(orjson.dumps(line) + b"\n")

    def entries(self, scenario: str = "") -> Iterable[Entry]:
        """Yield the last entry of each strike."""
        every = self._entries.values()
        return (one for one in every if scenario in {"", one.scenario})

    def summary(self) -> list[str]:
        """Return a line for each scenario and version."""
        return [
            self._line(scenario, version, sites)
            for (scenario, version), (_, sites) in sorted(self._sites.items())
        ]

    def _line(self, scenario: str, version: int, sites: Mapping[str, int]) -> str:
        mine = [one for one in self.entries(scenario) if one.version == version]
        done = [one for one in mine if one.outcome != ABSENT]
        kills = sum(one.kills for one in done)
        bad = sum(one.outcome == VIOLATED for one in done)
        return (
            f"{scenario} on {version}: {len(sites)} sites, {kills} kills,"
            f" {len(done) - kills} failures, {len(mine) - len(done)} not reached,"
            f" {bad} violations"
        )
