"""Every metric that is served: its name, type, unit, labels and meaning. Pure.

docs/metrics.md is this table, and a test compares it with what is served.
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
            "What runs; always 1.",
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
            "1 while the sink is delivered to, or nothing is left to deliver; 0 while"
            " it waits, is detached or given up, or its source does not flow.",
        ),
        Metric(
            "walstream_replication_lag_bytes",
            "gauge",
            "bytes",
            _SOURCE,
            "WAL that the server has and Kafka does not; 0 when idle, none while nobody"
            " tells.",
        ),
        Metric(
            "walstream_replication_lag_seconds",
            "gauge",
            "seconds",
            _SOURCE,
            "Age of the oldest change that is not delivered; 0 when idle, and growing"
            " while nothing is known.",
        ),
        Metric(
            "walstream_slot_retained_wal_bytes",
            "gauge",
            "bytes",
            _SLOT,
            "WAL that the server keeps for the slot, also for that of a detached sink.",
        ),
        Metric(
            "walstream_slot_safe_wal_bytes",
            "gauge",
            "bytes",
            _SLOT,
            "WAL that may still be written before the server gives the slot up; below 0"
            " once it may at any moment, none without max_slot_wal_keep_size.",
        ),
        Metric(
            "walstream_slot_wal_status",
            "gauge",
            "1",
            (*_SLOT, "status"),
            "1 for what the server calls the slot's WAL: reserved, extended, unreserved"
            " (about to go), lost.",
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
            "Transactions too large for logical_decoding_work_mem, as the server counts"
            " them for the slot.",
        ),
        Metric(
            "walstream_slot_spill_bytes_total",
            "counter",
            "bytes",
            _SLOT,
            "What the server wrote to disk of such transactions, counted likewise.",
        ),
        Metric(
            "walstream_slot_spilled_bytes",
            "gauge",
            "bytes",
            _SLOT,
            "What is on disk of such transactions now; none where the role may not see"
            " it.",
        ),
        Metric(
            "walstream_slot_alarm_spill_bytes",
            "gauge",
            "bytes",
            _SOURCE,
            "alarm_spill: more than this on disk turns /status red; none without an"
            " alarm.",
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
            "Ops read, repeats too: numbers of the stream, rows of a sql source,"
            ' records of a kafka source (those that are no ops with table="").',
        ),
        Metric(
            "walstream_delivered_total",
            "counter",
            "ops",
            _SINK,
            "Ops of transactions delivered whole; rows of a sql source, records of a"
            " kafka source.",
        ),
        Metric(
            "walstream_dropped_total",
            "counter",
            "ops",
            ("source", "sink", "table"),
            "Ops that have no topic, or no form in the sink's format.",
        ),
        Metric(
            "walstream_in_flight",
            "gauge",
            "records",
            _SINK,
            "Records on their way to Kafka, and the producer's own requests.",
        ),
        Metric(
            "walstream_backfill_rows_total",
            "counter",
            "rows",
            _SOURCE,
            "Rows that were there before, delivered: from the slot's snapshot, or"
            " beside the stream.",
        ),
        Metric(
            "walstream_backfill_left_tables",
            "gauge",
            "tables",
            _SOURCE,
            "Tables whose backfill is not done.",
        ),
        Metric(
            "walstream_errors_total",
            "counter",
            "errors",
            ("source", "kind"),
            "What ended or held up the source: transient, configuration, history,"
            " permission, defect, died (its process).",
        ),
        Metric(
            "walstream_http_wrong_tokens_total",
            "counter",
            "requests",
            (),
            "Requests of HTTP that showed another token than [http] has; none without"
            " one.",
        ),
        Metric(
            "walstream_poll_rows_total",
            "counter",
            "rows",
            _TABLE,
            "Rows of a polled table that were delivered, repeats too.",
        ),
        Metric(
            "walstream_poll_seconds",
            "histogram",
            "seconds",
            _TABLE,
            "How long each poll of a table took.",
        ),
        Metric(
            "walstream_poll_phase_seconds",
            "histogram",
            "seconds",
            ("source", "table", "phase", "outcome"),
            "Of polls that found rows, or failed: what went into the database (read),"
            " into Kafka (publish), into the state folder (store); by how they ended,"
            " success or error.",
        ),
        Metric(
            "walstream_poll_position",
            "gauge",
            "key",
            _TABLE,
            "The greatest key up to which all of a polled table is delivered.",
        ),
        Metric(
            "walstream_upstream_lag_records",
            "gauge",
            "records",
            _SOURCE,
            "Records of a kafka source's topics that were not passed on.",
        ),
        Metric(
            "walstream_poisoned_total",
            "counter",
            "records",
            _SOURCE,
            "Records of a kafka source that were no ops.",
        ),
        Metric(
            "source_events",
            "untyped",
            "ops",
            OLD_LABELS,
            "The older tool's name of walstream_ops_total.",
        ),
        Metric(
            "source_errors",
            "untyped",
            "errors",
            OLD_LABELS,
            "All of walstream_errors_total; of no single table.",
        ),
        Metric(
            "source_event_processing_time_sec",
            "histogram",
            "seconds",
            OLD_LABELS,
            "From reading a transaction's beginning to handing over its last op; its"
            " table is that of its last row.",
        ),
        Metric(
            "sink_events",
            "untyped",
            "ops",
            OLD_LABELS,
            "Ops that the sink was given and has a place for.",
        ),
        Metric(
            "sink_errors",
            "untyped",
            "errors",
            OLD_LABELS,
            "Errors of the sink, and each time that Kafka was away; of no single"
            " table.",
        ),
        Metric(
            "sink_event_processing_time_sec",
            "histogram",
            "seconds",
            OLD_LABELS,
            "From reading a transaction's beginning to the delivery of its last"
            " record; its table is that of its last row.",
        ),
    )
}
