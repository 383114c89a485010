"""Which columns decide a table's keys, and from which LSN on."""

from walstream.keys import KeyHistory, KeySet

FIRST = KeySet(0, primary_key=("id",))
SECOND = KeySet(100, primary_key=("code",))


def test_set_counts_from_its_lsn_on() -> None:
    history = KeyHistory([FIRST, SECOND])
    assert history.at(99) is FIRST
    assert history.at(100) is SECOND
    assert history.at(2**64 - 1) is SECOND


def test_history_without_sets_knows_no_keys() -> None:
    assert KeyHistory([]).at(5) == KeySet(0)


def test_transaction_below_all_sets_is_read_under_the_oldest() -> None:
    assert KeyHistory([SECOND]).at(5) is SECOND


def test_same_columns_are_no_change() -> None:
    history = KeyHistory([FIRST])
    assert not history.change(KeySet(100, primary_key=("id",)))
    assert list(history.boundaries()) == []


def test_other_columns_are_a_change_from_their_lsn() -> None:
    history = KeyHistory([FIRST])
    assert history.change(SECOND)
    assert list(history.boundaries()) == [100]
    assert history.change(KeySet(100, ("code",), ("org",)))
    assert history.at(100).partition_key == ("org",)


def test_columns_that_come_back_are_a_change_again() -> None:
    history = KeyHistory([FIRST, SECOND])
    assert history.change(KeySet(200, primary_key=("id",)))
    assert [history.at(lsn).primary_key for lsn in (50, 150, 250)] == [
        ("id",),
        ("code",),
        ("id",),
    ]


def test_sets_that_no_replay_needs_are_forgotten() -> None:
    history = KeyHistory([FIRST, SECOND, KeySet(200, ("x",))])
    history.forget_below(150)
    assert list(history.boundaries()) == [200]
    assert history.at(150) is SECOND


def test_it_says_from_where_nothing_is_forgotten() -> None:
    history = KeyHistory([FIRST, SECOND, KeySet(200, ("x",))])
    assert history.known_from == 0
    history.forget_below(150)
    assert history.known_from == 100


def test_history_survives_being_stored() -> None:
    history = KeyHistory([FIRST, KeySet(100, ("a", "b"), ("c",))])
    again = KeyHistory.from_json(history.to_json())
    assert again.to_json() == history.to_json()
    assert again.at(100) == KeySet(100, ("a", "b"), ("c",))
