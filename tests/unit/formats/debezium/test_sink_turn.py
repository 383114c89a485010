"""The clock, origins and order in a transaction."""

from walstream.formats.debezium.sink_turn import SinkTurn


def test_the_clock_is_told_in_three_units() -> None:
    turn = SinkTurn()
    turn.begin(1795404370543577046)
    assert turn.ending == (
        '"ts_ms":1795404370543,"ts_us":1795404370543577,"ts_ns":1795404370543577046}'
    )


def test_an_origin_is_a_name_and_an_lsn() -> None:
    turn = SinkTurn()
    assert turn.origin == '"origin":null,"origin_lsn":null'
    turn.come_from('e"ast', 77)
    assert turn.origin == '"origin":"e\\"ast","origin_lsn":77'
    turn.come_from("", 0)
    assert turn.origin == '"origin":null,"origin_lsn":null'


def test_records_of_a_table_are_counted_in_each_transaction() -> None:
    turn = SinkTurn()
    orders = [turn.order("s.t", 5, seq_id) for seq_id in (0, 2, 3)]
    assert orders == [1, 2, 3]
    assert turn.order("s.u", 5, 1) == 1
    assert turn.order("s.t", 6, 0) == 1


def test_an_op_that_is_written_again_keeps_its_number() -> None:
    turn = SinkTurn()
    assert [turn.order("s.t", 5, 0), turn.order("s.t", 5, 0)] == [1, 1]
    assert turn.order("s.t", 5, 1) == 2
