"""Ages of missing keys: nobody sets the clock that they are counted by."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.sources.sql import gap_clock
from walstream.sources.sql.gap_clock import Clock, Times

HOUR_S = 3600.0
jumps = st.floats(-1e8, 1e8)


@dataclass
class Machine:
    """A machine whose wall clock is set, which sleeps and is started again."""

    wall: float = 1.7e9
    ticks: float = 1000.0
    boots: int = 0

    def clock(self, before: Clock | None = None) -> Clock:
        times = Times(lambda: self.wall, lambda: self.ticks, f"boot {self.boots}")
        return Clock(before.reading() if before else None, HOUR_S, times)

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.ticks += seconds

    def reboot(self) -> None:
        self.boots += 1
        self.ticks = 5.0


@given(st.lists(st.tuples(jumps, st.floats(0, 1e5), st.booleans()), max_size=10))
def test_a_wall_clock_that_is_set_moves_no_age(
    steps: list[tuple[float, float, bool]],
) -> None:
    machine = Machine()
    clock = machine.clock()
    since, waited = clock.now(), 0.0
    for jump, seconds, restarts in steps:
        machine.wall += jump
        machine.wait(seconds)
        waited += seconds
        if restarts:
            clock = machine.clock(clock)
        assert abs(clock.now() - since - waited) < 1e-3


@given(jumps)
def test_a_reboot_moves_ages_by_a_tenth_of_what_is_waited_for_at_most(
    jump: float,
) -> None:
    machine = Machine()
    before = machine.clock()
    reading = before.reading()
    machine.reboot()
    machine.wall += jump
    times = Times(lambda: machine.wall, lambda: machine.ticks, "another")
    passed = Clock(reading, HOUR_S, times).now() - reading.at
    assert -1e-3 <= passed <= HOUR_S / 10 + 1e-3
    if 0 <= jump <= HOUR_S / 10:
        assert abs(passed - jump) < 1e-3


def test_a_machine_that_does_not_name_its_boots_is_another_each_time() -> None:
    machine = Machine()
    times = Times(lambda: machine.wall, lambda: machine.ticks, "?")
    reading = Clock(None, HOUR_S, times).reading()
    machine.ticks += 10 * HOUR_S
    assert Clock(reading, HOUR_S, times).now() - reading.at < 1


def test_it_begins_with_the_time_of_the_wall() -> None:
    machine = Machine()
    assert abs(machine.clock().now() - machine.wall) < 1e-3


def test_time_in_which_nobody_ran_counts_by_the_machines_own_clock() -> None:
    machine = Machine()
    reading = machine.clock().reading()
    for waited_s in (0.0, 500.0):
        machine.wait(waited_s)
        machine.wall += 1e6
        times = Times(lambda: machine.wall, lambda: machine.ticks, "boot 0")
        assert Clock(reading, HOUR_S, times).now() == reading.at + waited_s


def test_the_kernel_names_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    named = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    assert Clock(None, HOUR_S).reading().boot == named != ""
    monkeypatch.setattr(gap_clock, "_BOOT", Path("/nowhere"))
    unknown = Clock(None, HOUR_S).reading()
    assert unknown.boot == "?"
    # which is none of before: no more than a part of what passed is believed
    later = Times(lambda: unknown.wall + 1e6, lambda: unknown.ticks + 1e6)
    assert Clock(unknown, HOUR_S, later).now() == unknown.at + HOUR_S / 10
