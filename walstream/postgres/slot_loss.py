"""Errors of a stream that say: the slot, or the WAL it needs, is gone.

SQLSTATE alone does not: 58P01 is any missing file, such as the library of a type. An
error that is not known here is tried again, and each start looks at the slot itself.
"""

import re
from typing import Final

import psycopg

MISSING_FILE: Final = "58P01"
"""SQLSTATE undefined_file."""
_WORDS: Final = {
    "42704": re.compile('replication slot ".*" does not exist'),
    "55000": re.compile("(can no longer|cannot read from) .*replication slot"),
    MISSING_FILE: re.compile("requested WAL segment .* has already been removed"),
}
# names of the server's source are not translated
_FILES: Final = {
    "42704": {"slot.c"},
    MISSING_FILE: {"walsender.c", "xlogreader.c", "xlogutils.c"},
}


def tells_of_loss(error: psycopg.Error) -> bool:
    """Return whether what the slot has not sent yet can no longer be read."""
    state = error.sqlstate or ""
    if error.diag.source_file in _FILES.get(state, ()):
        return True
    words = _WORDS.get(state)
    text = error.diag.message_primary or str(error)
    return words is not None and words.search(text) is not None
