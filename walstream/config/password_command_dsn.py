"""A password_command inside of a connection string: it goes wherever that goes.

A connection string reaches threads, Spark tasks and slots as one text, and so does what
prints its password. libpq and SQLAlchemy never see it: who connects takes it out first.
"""

import json
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

_KEY: Final = "walstream_password_command"
_CARRIED: Final = re.compile(rf"[ ?&]{_KEY}=(?P<command>[^ &]*)$")


def carry(text: str, command: Sequence[str]) -> str:
    """Put the command behind a DSN or URL; what has one already stays as it is."""
    if not command or _CARRIED.search(text):
        return text
    mark = " "
    if "://" in text:
        mark = "&" if "?" in text else "?"
    return f"{text}{mark}{_KEY}={quote(json.dumps(list(command)), safe='')}"


def take_out(text: str) -> tuple[str, list[str]]:
    """Return the DSN or URL as it was written, and the command; [] is none."""
    found = _CARRIED.search(text)
    if found is None:
        return text, []
    command: list[str] = json.loads(unquote(found["command"]))
    return text[: found.start()], command
