"""Catalog of all metrics: name, type, unit, labels and meaning. Pure.

docs/metrics.md is this table; a test compares it with what is served.
"""

from typing import Final, NamedTuple


class Metric(NamedTuple):
    name: str  # as a dashboard asks for it
    kind: str  # counter | gauge | histogram | untyped
    unit: str
    labels: tuple[str, ...]
    meaning: str


_SOURCE: Final = ("source",)
_SINK: Final = ("source", "sink")
_SLOT: Final = ("source", "slot")
_TABLE: Final = ("source", "table")
OLD_LABELS: Final = ("name", "type", "table")
# with `metric_labels = "psql-streamer"`, by the first word of a metric's name
PSQL_STREAMER_LABELS: Final = {
    "source": ("sourceName", "sourceType", "table"),
    "sink": ("sinkName", "sinkType", "table"),
}
PSQL_STREAMER_TYPES: Final = {
    ("source", "postgres"): "Source-PSQL",
    ("source", "kafka"): "Source-Kafka",
    ("sink", "kafka"): "Sink-Kafka",
    ("sink", "discard"): "Sink-Stub",
}

METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric(
            "walstream_build_info",
            "gauge",
            "1",
            ("version", "python"),
            "The version that runs; always 1.",
        ),
        Metric(
            "walstream_start_time_seconds",
            "gauge",
            "seconds",
            (),
            "When the supervisor started, in Unix time.",
        ),
        Metric(
            "walstream_source_up",
            "gauge",
            "1",
            ("source", "type"),
            "1 while the source has no problem, 0 while /status names one.",
        ),
        Metric(
            "walstream_sink_up",
            "gauge",
            "1",
            ("source", "sink", "type"),
            "1 while the sink takes ops, or none are left to deliver; 0 while it waits,"
            " is detached or dropped, or its source does not run.",
        ),
        Metric(
            "walstream_replication_lag_bytes",
            "gauge",
            "bytes",
            _SOURCE,
            "WAL that the server has and Kafka does not; 0 when idle, no sample while"
            " it is unknown.",
        ),
        Metric(
            "walstream_replication_lag_seconds",
            "gauge",
            "seconds",
            _SOURCE,
            "Age of the oldest change that is not delivered; 0 when idle. It grows"
            " while the source does not report.",
        ),
        Metric(
            "walstream_slot_retained_wal_bytes",
            "gauge",
            "bytes",
            _SLOT,
            "WAL that the server keeps for the slot, also for a detached sink's slot.",
        ),
        Metric(
            "walstream_slot_safe_wal_bytes",
            "gauge",
            "bytes",
            _SLOT,
            "WAL that may still be written before the server invalidates the slot;"
            " below 0 when it may at any moment; no sample without"
            " max_slot_wal_keep_size.",
        ),
        Metric(
            "walstream_slot_wal_status",
            "gauge",
            "1",
            (*_SLOT, "status"),
            "1 for the slot's wal_status: reserved, extended, unreserved (about to be"
            " removed), lost.",
        ),
        Metric(
            "walstream_slot_alarm_wal_bytes",
            "gauge",
            "bytes",
            _SOURCE,
            "alarm_retained_wal: more than this turns /status red.",
        ),
        Metric(
            "walstream_slot_spill_transactions_total",
            "counter",
            "transactions",
            _SLOT,
            "Transactions larger than logical_decoding_work_mem, as the server counts"
            " them for the slot.",
        ),
        Metric(
            "walstream_slot_spill_bytes_total",
            "counter",
            "bytes",
            _SLOT,
            "Bytes of such transactions that the server wrote to disk, counted by the"
            " server.",
        ),
        Metric(
            "walstream_slot_spilled_bytes",
            "gauge",
            "bytes",
            _SLOT,
            "Bytes of such transactions on disk now; no sample where the role lacks the"
            " right to see it.",
        ),
        Metric(
            "walstream_slot_alarm_spill_bytes",
            "gauge",
            "bytes",
            _SOURCE,
            "alarm_spill: more than this on disk turns /status red; no sample without"
            " an alarm.",
        ),
        Metric(
            "walstream_slot_synchronous",
            "gauge",
            "1",
            _SLOT,
            "1 while synchronous_standby_names names its reader: commits wait for"
            " Kafka.",
        ),
        Metric(
            "walstream_end_to_end_latency_seconds",
            "histogram",
            "seconds",
            _SINK,
            "From a transaction's commit to the delivery of its last record.",
        ),
        Metric(
            "walstream_ops_total",
            "counter",
            "ops",
            _TABLE,
            "Ops read, including repeats: ops of a stream, rows of a sql source,"
            ' records of a kafka source (table="" for records that are not ops).',
        ),
        Metric(
            "walstream_delivered_total",
            "counter",
            "ops",
            _SINK,
            "Ops of fully delivered transactions; rows of a sql source, records of a"
            " kafka source.",
        ),
        Metric(
            "walstream_dropped_total",
            "counter",
            "ops",
            ("source", "sink", "table"),
            "Ops that have no topic, or that the sink's format cannot express.",
        ),
        Metric(
            "walstream_skipped_delivered_total",
            "counter",
            "records",
            _SINK,
            "Records that Kafka had already, and that were not sent again"
            " (skip_delivered).",
        ),
        Metric(
            "walstream_in_flight",
            "gauge",
            "records",
            _SINK,
            "Records on their way to Kafka, and the producer's own requests.",
        ),
        Metric(
            "walstream_limit_held_seconds_total",
            "counter",
            "seconds",
            _SOURCE,
            "Time for which max_rows_per_second or max_bytes_per_second held the"
            " stream; no sample without a limit.",
        ),
        Metric(
            "walstream_backfill_rows_total",
            "counter",
            "rows",
            _SOURCE,
            "Existing rows that were delivered: from the slot's snapshot, or by an"
            " incremental backfill.",
        ),
        Metric(
            "walstream_backfill_messages_total",
            "counter",
            "messages",
            ("source", "result"),
            "Requests for backfills by logical messages: accepted or refused; no sample"
            " without backfill_by_message.",
        ),
        Metric(
            "walstream_backfill_left_tables",
            "gauge",
            "tables",
            _SOURCE,
            "Tables whose backfill is not finished.",
        ),
        Metric(
            "walstream_errors_total",
            "counter",
            "errors",
            ("source", "kind"),
            "Errors that ended or delayed the source: transient, configuration,"
            " history, permission, defect, died (its process).",
        ),
        Metric(
            "walstream_http_wrong_tokens_total",
            "counter",
            "requests",
            (),
            "HTTP requests with a wrong token; no sample where [http] has no token.",
        ),
        Metric(
            "walstream_poll_rows_total",
            "counter",
            "rows",
            _TABLE,
            "Rows of a polled table that were delivered, including repeats.",
        ),
        Metric(
            "walstream_poll_seconds",
            "histogram",
            "seconds",
            _TABLE,
            "Duration of each poll of a table.",
        ),
        Metric(
            "walstream_poll_phase_seconds",
            "histogram",
            "seconds",
            ("source", "table", "phase", "outcome"),
            "Of polls that found rows or failed: the time spent in the database (read),"
            " in Kafka (publish) and in the state folder (store), by outcome, success"
            " or error.",
        ),
        Metric(
            "walstream_poll_position",
            "gauge",
            "key",
            _TABLE,
            "The greatest key up to which all rows of a polled table are delivered.",
        ),
        Metric(
            "walstream_upstream_lag_records",
            "gauge",
            "records",
            _SOURCE,
            "Records of a kafka source's topics that are not yet passed on.",
        ),
        Metric(
            "walstream_poisoned_total",
            "counter",
            "records",
            _SOURCE,
            "Records of a kafka source that are not ops.",
        ),
        Metric(
            "source_events",
            "untyped",
            "ops",
            OLD_LABELS,
            "Alias of walstream_ops_total, for dashboards of psql-streamer.",
        ),
        Metric(
            "source_errors",
            "untyped",
            "errors",
            OLD_LABELS,
            "Sum of walstream_errors_total over all kinds; not by table.",
        ),
        Metric(
            "source_event_processing_time_sec",
            "histogram",
            "seconds",
            OLD_LABELS,
            "From reading a transaction's Begin to handing over its last op; the table"
            " is that of its last row.",
        ),
        Metric(
            "sink_events",
            "untyped",
            "ops",
            OLD_LABELS,
            "Ops that the sink took and has a topic for.",
        ),
        Metric(
            "sink_errors",
            "untyped",
            "errors",
            OLD_LABELS,
            "Errors of the sink, and how often Kafka was away; not by table.",
        ),
        Metric(
            "sink_event_processing_time_sec",
            "histogram",
            "seconds",
            OLD_LABELS,
            "From reading a transaction's Begin to the delivery of its last record; the"
            " table is that of its last row.",
        ),
    )
}
