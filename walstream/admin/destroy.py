"""Giving a source up: its slot, its publications and its state are dropped, in order.

The state goes last, and at once: after a crash in between, the same command finds what
is left, and still knows what was to stay.
"""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from walstream.admin.teardown import Teardown, aside_of, planned
from walstream.config import Config
from walstream.errors import ConfigError, Repair, Transient
from walstream.postgres import publication, quoting
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection
from walstream.state.lock import FolderLock, holder


def destroy(
    config: Config,
    name: str,
    consent: Callable[[Teardown], bool],
    *,
    adopt: bool = False,
) -> Teardown | None:
    """Drop all that a source made for itself; return what was dropped.

    A slot that no state claims stays, unless `adopt` says that it is the source's.
    `consent` is asked first; None: it refused. Raises Transient while an instance runs
    on the state, another one reads a slot, or what it agreed to changed meanwhile;
    HistoryError for the slots of another server. A second call finds nothing to drop.
    """
    state = Path(config.state)
    config.source(name)
    _refuse_running(state, name)
    with planned(config, name, adopt=adopt) as (shown, _):
        pass  # no session waits for a person
    if shown.empty:
        return shown
    if not consent(shown):
        return None
    lock = FolderLock(state)
    lock.acquire()
    try:
        with planned(config, name, adopt=adopt) as (teardown, connection):
            _refuse_changed(config, shown, teardown)
            if connection is not None:
                _drop(connection, teardown)
        _forget(state / name)
    finally:
        lock.release()
    return teardown


def _refuse_running(state: Path, name: str) -> None:
    if (process := holder(state)) is not None:
        raise Transient(
            f"walstream runs on this state as process {process}: source {name!r} cannot"
            " be destroyed under it",
            hint=f"stop it first: kill {process}",
        )


def _refuse_changed(config: Config, shown: Teardown, found: Teardown) -> None:
    if changed := found.changes(shown):
        again = config.command(f"walstream destroy {shown.source}")
        raise Transient(
            f"source {shown.source!r} changed after it was shown"
            f" ({', '.join(changed)}): nothing was dropped",
            hint=f"see what is dropped now: {again}",
            repair=Repair(command=again),
        )


def _drop(connection: Connection, teardown: Teardown) -> None:
    """Drop what the server has; the slot first, since it holds WAL."""
    if teardown.slot is not None:
        slots.drop(connection, teardown.slot.name)
    for copy in teardown.copies:
        slots.drop(connection, copy)
    for one in teardown.publications:
        statement = f"DROP PUBLICATION IF EXISTS {quoting.name(one)};"
        publication.execute(connection, statement)


def _forget(folder: Path) -> None:
    """Delete a source's part of the state; none there is fine.

    It is renamed first: half of it would be read as a state that knows nothing.
    """
    aside = aside_of(folder)
    try:
        if aside.is_dir():
            shutil.rmtree(aside)
        if folder.is_dir():
            folder.rename(aside)
            shutil.rmtree(aside)
    except OSError as error:
        left = [shlex.quote(str(one)) for one in (aside, folder) if one.exists()]
        raise ConfigError(
            f"the state folder {folder} cannot be deleted: {error.strerror or error}",
            hint=f"all else is done; delete it yourself: rm -r {' '.join(left)}",
        ) from None
