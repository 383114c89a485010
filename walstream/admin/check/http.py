"""Findings of `check` about the HTTP address, before `run` needs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from walstream.config import Config
from walstream.errors import ConfigError, PermissionLacking, Repair
from walstream.finding import Finding, warning
from walstream.service.http.socket import listen
from walstream.state.lock import holder

_CODE: Final = "http-listen"
_SUBJECT: Final = "http"


def inspect(config: Config) -> Iterator[Finding]:
    """Listen for a moment; an instance that runs here may have the addresses."""
    http = config.http
    if not (http.listen or http.probes) or _runs(Path(config.state)):
        return
    for key, address in (("listen", http.listen), ("probes", http.probes)):
        if address:
            yield from _taken(key, address, written=key in http.model_fields_set)


def _taken(key: str, address: str, *, written: bool) -> Iterator[Finding]:
    try:
        for one in listen(address, key):
            one.close()
    except ConfigError as error:
        if written:
            yield Finding.of(error, _CODE, _SUBJECT)
            return
        yield warning(
            _CODE,
            _SUBJECT,
            str(error.args[0]),
            "run continues without page, health checks and metrics",
            Repair(then=error.hint),
        )


def _runs(folder: Path) -> bool:
    try:
        return holder(folder) is not None
    except (OSError, PermissionLacking):  # another user's
        return False
