"""A part of the long tests that ends in time: `--sample SECONDS`, chosen by a seed.

The order depends on the seed alone, which is pytest-randomly's. What takes over a
minute declares it, `@pytest.mark.takes(300)`; nothing begins that may end behind the
time, and what takes much of it is left to a whole run. What else declares its length
begins early where tests run in several processes.
"""

import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pytest

_MARKER: Final = "takes"
_UNDECLARED_S: Final = 60.0
_TOGETHER: Final = 3  # tests of a module, which share what it sets up
_LEAST_PARTS: Final = 4  # one test may not take the time of many


@dataclass(frozen=True)
class Sample:
    """So many seconds of tests, in the order of a seed."""

    budget_s: float
    seed: int

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return the names shuffled: a few of each module before more of any."""
        ranks: dict[str, int] = {}
        places: dict[str, tuple[int, int, int]] = {}
        for name in sorted(names, key=self._die):
            module = name.partition("::")[0]
            ranks[module] = ranks.get(module, -1) + 1
            places[name] = ranks[module] // _TOGETHER, self._die(module), ranks[module]
        return sorted(places, key=places.__getitem__)

    def may_take(self, length_s: float) -> bool:
        return length_s * _LEAST_PARTS <= self.budget_s

    def may_begin(self, spent_s: float, length_s: float) -> bool:
        return spent_s + length_s <= self.budget_s

    def _die(self, name: str) -> int:
        # by the name, so that a test that is added moves no other
        return zlib.crc32(f"{self.seed} {name}".encode())


class Sampling:
    """Plugin: runs what is in a sample, until its time is over."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._began = time.monotonic()
        self._over = False
        self._ran = self._left = self._long = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        fitting = {
            one.nodeid: one for one in items if self._sample.may_take(length_of(one))
        }
        out = [one for one in items if one.nodeid not in fitting]
        config.hook.pytest_deselected(items=out)
        self._long = len(out)
        items[:] = [fitting[name] for name in self._sample.ordered(fitting)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run no test that may end too late, and none behind it: they share set-ups."""
        spent_s = time.monotonic() - self._began
        if not self._sample.may_begin(spent_s, length_of(item)):
            self._over = True
        if self._over:
            self._left += 1
            return True
        self._ran += 1
        return None

    @pytest.hookimpl
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        terminalreporter.section("sample")
        terminalreporter.line(
            f"{self._ran} tests within {time.monotonic() - self._began:.0f} s;"
            f" no time for {self._left}, and {self._long} are longer than a"
            f" {_LEAST_PARTS}th of {self._sample.budget_s:.0f} s; the same order:"
            f" make fault SAMPLE={self._sample.budget_s:.0f} SEED={self._sample.seed}"
        )


def length_of(item: pytest.Item, undeclared_s: float = _UNDECLARED_S) -> float:
    """Return how many seconds a test is known to take, or may take."""
    marker = item.get_closest_marker(_MARKER)
    return float(marker.args[0]) if marker is not None else undeclared_s


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Let what is long begin first where several run: last, it would run alone."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda one: length_of(one, 0.0), reverse=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("parts of a long run").addoption(
        "--sample",
        metavar="SECONDS",
        type=float,
        help="run tests for SECONDS in the order of --randomly-seed",
    )


@pytest.hookimpl(trylast=True)  # the seed is drawn by then
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARKER}(seconds): how long it takes, where that is long"
    )
    budget_s = config.getoption("--sample")
    if budget_s is not None:
        seed = int(config.getoption("randomly_seed"))
        config.pluginmanager.register(Sampling(Sample(budget_s, seed)), "sampling")
