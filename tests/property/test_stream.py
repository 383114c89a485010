"""START_REPLICATION says the same names back, whatever is in them.

The oracle follows PostgreSQL's repl_scanner.l and SplitIdentifierString.
"""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import lsns, names
from walstream.lsn import Lsn, parse
from walstream.postgres.stream import start_command

COMMAND = re.compile(
    r'START_REPLICATION SLOT ("(?:[^"]|"")+") LOGICAL ([0-9A-F]+/[0-9A-F]+)'
    r" \(proto_version '1', publication_names '((?:[^']|'')*)'\)",
    re.DOTALL,
)


def split_identifiers(text: str) -> list[str]:
    """Unquote a list of quoted identifiers, as SplitIdentifierString does."""
    found = []
    while True:
        name = re.match(r'"((?:[^"]|"")+)"', text, re.DOTALL)
        assert name is not None, text
        found.append(name[1].replace('""', '"'))
        text = text[name.end() :]
        if not text:
            return found
        assert text.startswith(",")
        text = text[1:]


@given(names, lsns, st.lists(names, min_size=1, max_size=3))
def test_hostile_names_parse_back(slot: str, lsn: Lsn, publications: list[str]) -> None:
    parts = COMMAND.fullmatch(start_command(slot, lsn, publications))
    assert parts is not None
    assert split_identifiers(parts[1]) == [slot]
    assert parse(parts[2]) == lsn
    assert split_identifiers(parts[3].replace("''", "'")) == publications
