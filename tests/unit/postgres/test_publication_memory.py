"""What is remembered of publications is read back as it was written."""

import json

from walstream.postgres.publication_facts import Sighting
from walstream.postgres.publication_memory import Altered, Memory

SEEN = Sighting(9, frozenset({"insert"}), via_root=True, xmin=700)


def test_a_memory_is_read_back_with_a_change_that_was_cut_short() -> None:
    after = Memory({"p": SEEN}, frozenset({"4"}))
    memory = Memory({"p": SEEN}, frozenset({"4", "2/20"}), Altered("701", after))
    assert Memory.of(json.loads(json.dumps(memory.document("p")))) == memory


def test_an_older_walstream_finds_what_it_knows() -> None:
    stored = Memory({"p": SEEN}).document("p")["p"]
    assert (
        stored.items()
        >= {"oid": 9, "operations": ["insert"], "via_root": True, "tables": []}.items()
    )
