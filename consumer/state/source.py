"""Whose changes a topic holds: the database, and which history of it."""

from typing import Literal

from consumer.errors import ForeignSource
from consumer.group.assigned_partition import Place
from consumer.state.schema import reset

AcceptSource = str | Literal[True] | None
"""The one source to change to, or True for any but an earlier history of the same."""


def accepts(accepted: AcceptSource, kept: str, named: str) -> bool:
    """Return whether a group that read `kept` may go on with `named`."""
    if accepted is True:
        return not _earlier(named, kept)
    return accepted == named


def _earlier(named: str, kept: str) -> bool:
    """Return an earlier epoch of the same database: a replay, which would undo."""
    home, _, epoch = named.rpartition("/")
    kept_home, _, kept_epoch = kept.rpartition("/")
    if home != kept_home or not (epoch.isdecimal() and kept_epoch.isdecimal()):
        return False
    return int(epoch) < int(kept_epoch)


def foreign_source(
    group: str, place: Place, offset: int, kept: str, named: str
) -> ForeignSource:
    """Make the error that stops a consumer at another source's first record."""
    repair = reset(group, place.topic)
    return ForeignSource(
        f"{place} offset {offset} comes from source {named}, and group {group} read"
        f" {kept} so far: their positions cannot be compared",
        hint=f'continue with accept_source="{named}" if the target matches that source'
        " (backfill it again after a restore), or make the group forget the topic and"
        f" read it from its first record; in the application's database:\n{repair.sql}",
        repair=repair,
    ).at(*place, offset)
