"""A draft keeps what is said of each key, and shows no secret."""

from tests.support.connector import connector
from walstream.admin.connector.draft import Draft, Fate, KeyReport, is_secret

SALTED = "column.mask.hash.MD5.with.salt.s4lt"


def test_a_key_is_told_where_it_went() -> None:
    draft = Draft(connector({"slot.name": "dbz"}), source="shop")
    draft.put("slot.name", "source", "slot", "dbz", "as it was")
    draft.put("not.there", "producer", "linger.ms", "5")
    assert draft.origins == {("source", "slot"): "slot.name"}
    assert draft.tables["producer"] == {"linger.ms": "5"}
    assert list(draft.reports()) == [
        KeyReport(
            "slot.name",
            Fate.TRANSLATED,
            '[sources.shop] slot = "dbz"; as it was',
        )
    ]
    assert "slot.name" not in draft.unspoken()


def test_the_same_is_told_once_and_a_salt_never() -> None:
    draft = Draft(connector({SALTED: "a.b.c"}))
    draft.decide(SALTED, "x")
    draft.decide(SALTED, "x")
    (told,) = draft.reports()
    assert told.key == "column.mask.hash.MD5.with.salt.***"
    assert is_secret(SALTED)
    assert is_secret("database.password")
    assert not is_secret("database.user")
