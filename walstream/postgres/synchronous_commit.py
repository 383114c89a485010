"""Synchronous commit: whether synchronous_standby_names covers a name; pure.

PostgreSQL takes any walsender whose application_name is named there for a standby, one
that reads a slot for us as well. Then a COMMIT waits until Kafka has it, and a commit
that the real standby lacks may be acknowledged for our sake.
"""

import re
from typing import Final

from walstream.errors import ConfigError, Repair

# syncrep_scanner.l: a quoted name, where "" is a quote, or anything up to a delimiter
_TOKEN: Final = re.compile(r'"((?:[^"]|"")*)"|([^\s,()"]+)|([(),])')


def holds_commits(setting: str, application: str) -> bool:
    """Return whether a walsender of this name may be a synchronous standby."""
    names = [name.lower() for name in _names(setting)]
    return "*" in names or application.lower() in names


def _names(setting: str) -> list[str]:
    """Return the standbys of `a, b`, `2 (a, b)`, `FIRST 2 (a, b)` or `ANY 2 (a, b)`."""
    tokens = [(match[1], match[2], match[3]) for match in _TOKEN.finditer(setting)]
    opening = next((at for at, token in enumerate(tokens) if token[2] == "("), -1)
    return [
        plain or quoted.replace('""', '"')
        for quoted, plain, delimiter in tokens[opening + 1 :]
        if not delimiter
    ]


def text(setting: str, application: str) -> str:
    """Return a message that it is, or may become, one."""
    return (
        f"the walsender of {application!r} is, or may become, a synchronous standby"
        f" (synchronous_standby_names = {setting!r}): commits would wait for Kafka"
    )


def refusal(setting: str, application: str) -> ConfigError:
    """Make the error of a start that would hold up commits."""
    return ConfigError(
        text(setting, application),
        hint="while Kafka or walstream is down no COMMIT would return, and a commit "
        "might be acknowledged before a standby has it; if you want that, set "
        "allow_synchronous = true in the source",
        repair=Repair(
            sql="ALTER SYSTEM SET synchronous_standby_names = 'the standbys by name';\n"
            "SELECT pg_reload_conf();",
            then="or give the source's dsn an application_name that is not named there",
        ),
    )
