"""What keeps the HTTP listener from its address, before `run` meets it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from walstream.config import Config
from walstream.errors import ConfigError, PermissionLacking, Repair
from walstream.finding import Finding, warning
from walstream.http.listening import listen
from walstream.lock import holder

_CODE: Final = "http-listen"
_SUBJECT: Final = "http"


def inspect(config: Config) -> Iterator[Finding]:
    """Listen for a moment; an instance that runs here may have the address."""
    if not config.http.listen or _runs(Path(config.state)):
        return
    try:
        for one in listen(config.http.listen):
            one.close()
    except ConfigError as error:
        if "listen" in config.http.model_fields_set:
            yield Finding.of(error, _CODE, _SUBJECT)
            return
        yield warning(
            _CODE,
            _SUBJECT,
            str(error.args[0]),
            "run goes on without page, health and metrics",
            Repair(then=error.hint),
        )


def _runs(folder: Path) -> bool:
    try:
        return holder(folder) is not None
    except (OSError, PermissionLacking):  # another user's
        return False
