"""Values without a form are named once in the log, and never shown."""

from structlog.testing import capture_logs

from walstream.formats.debezium import DebeziumOptions, DebeziumRecords, SinkTurn
from walstream.kafka.debezium_losses import Losses
from walstream.op import Kind, ReplicationOp, Table

LINE = 628  # a type that Debezium leaves out
TABLE = Table("public", "t", ("id", "n", "l"), (0,), (23, 1700, LINE))


def written(records: DebeziumRecords, number: str) -> None:
    records.encode(
        ReplicationOp(Kind.INSERT, TABLE, 9, 0, new=["1", number, "{1,2,3}"])
    )


def test_each_column_and_reason_is_named_once() -> None:
    records = DebeziumRecords(TABLE, DebeziumOptions("app"), SinkTurn())
    losses = Losses("kafka")
    with capture_logs() as logs:
        losses.look("public.t", records.columns)
        written(records, "NaN")
        written(records, "NaN")
        losses.look("public.t", records.columns)
        written(records, "Infinity")
        losses.look("public.t", records.columns)
    left_out, lost = logs
    assert left_out["columns"] == ["l"]
    assert (lost["column"], lost["count"]) == ("n", 2)
    assert "NaN" not in str(lost)


def test_what_has_a_form_is_not_named() -> None:
    records = DebeziumRecords(TABLE, DebeziumOptions("app", unknown=True), SinkTurn())
    written(records, "1.5")
    with capture_logs() as logs:
        Losses("kafka").look("public.t", records.columns)
    assert logs == []
