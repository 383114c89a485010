"""Which calls are struck, and how: of a site's first, middle and last one."""

import errno
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from tests.callsites.shim import Action, Order

# what such a message asks for changes nothing by itself: it comes behind all others
_ASKS: Final = {
    *("SELECT", "WITH", "SHOW", "SET", "FETCH", "SSLRequest", "StartupMessage", "X"),
    *("api 3", "api 18", "api 32", "api 10"),  # metadata, versions, configuration
}
_SENDS: Final = {"sendto", "sendmsg"}
_PLACES: Final = ("first", "last", "middle")
# what a call may fail with, where the thing that it is done to is a file
_OF_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "write": ("ENOSPC", "EIO", "EINTR"),
    "writev": ("ENOSPC", "EIO", "EINTR"),
    "pwrite64": ("ENOSPC", "EIO", "EINTR"),
    "pwritev": ("ENOSPC", "EIO", "EINTR"),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "fdatasync": ("EIO", "ENOSPC", "EINTR"),
    "creat": ("ENOSPC", "EIO"),
    "mkdir": ("ENOSPC", "EIO"),
    "rename": ("ENOSPC", "EIO"),
    "unlink": ("EIO",),
    "rmdir": ("EIO",),
    "ftruncate": ("EIO", "EINTR"),
    "fallocate": ("ENOSPC", "EINTR"),
    "chmod": ("EIO",),
    "bind": ("ENOSPC",),
}
# a reader that is there takes what is written, unless a signal comes between
_OF_PIPES: Final = ("EINTR",)
_KILLS: Final = {
    "killed before": Action.KILL_BEFORE,
    "killed after": Action.KILL_AFTER,
}


@dataclass(frozen=True, slots=True)
class Strike:
    """One thing that is done to one call of a site."""

    site: str
    place: str  # first, middle or last
    how: str  # killed before or after, or the error that it fails with

    @property
    def name(self) -> str:
        return f"{self.site}, {self.place}: {self.how}"

    @property
    def kills(self) -> bool:
        return self.how in _KILLS

    def order(self, count: int, *, group: bool) -> Order:
        """Return the order for the call of that place, of so many."""
        at = {"first": 1, "middle": (count + 1) // 2, "last": count}[self.place]
        if self.kills:
            return Order(self.site, at, _KILLS[self.how], group=group)
        return Order(self.site, at, Action.FAIL, getattr(errno, self.how))


def errors(site: str) -> tuple[str, ...]:
    """Return what a call of that site may fail with."""
    _, called, target = site.split(" ")[:3]
    if called == "connect":
        return ("ECONNREFUSED",) if ".sock" in target else ("ECONNREFUSED", "ETIMEDOUT")
    if called in _SENDS:
        return ("EPIPE", "EINTR") if ".sock" in target else ("ECONNRESET", "EINTR")
    if target in {"pipe", "stdout"}:
        return _OF_PIPES
    return _OF_FILES[called]


def strikes(counts: Mapping[str, int], seed: int) -> list[Strike]:
    """List all, shuffled: what only asks comes last, first calls before others."""
    choose = random.Random(seed)  # noqa: S311 - an order of tests
    found: list[Strike] = []
    for asks, place in product((False, True), _PLACES):
        sites = [
            site
            for site, count in sorted(counts.items())
            if _has(place, count) and _asks(site) is asks
        ]
        part = [
            Strike(site, place, how)
            for site in sites
            for how in (*_KILLS, *errors(site))
        ]
        choose.shuffle(part)
        found += part
    return found


def _asks(site: str) -> bool:
    """Tell whether the call only opens a connection, or asks for something."""
    _, called, _, *said = site.partition(" @")[0].split(" ", 3)
    return called == "connect" or (bool(said) and said[0] in _ASKS)


def _has(place: str, count: int) -> bool:
    return count > _PLACES.index(place)


def sample(all_of_them: Iterable[Strike], count: int, seed: int) -> list[Strike]:
    """Choose so many, of whatever place."""
    choose = random.Random(seed)  # noqa: S311 - an order of tests
    given = list(all_of_them)
    return choose.sample(given, min(count, len(given)))
