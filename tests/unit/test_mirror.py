"""Every module has a unit test of its name, or names the test that drives it.

A file alone imports the module. Where it does not (the module asks servers, or is run
as a process), a word stands behind it: the test, or the verb, that drives the module.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project.own_coverage import ROOT, modules, unit_test_of

DRIVEN_BY = {
    "walstream/sources/context.py": "unit/sources/postgres/test_runner.py",
    "walstream/sources/sql/table_reader.py": (
        "integration/test_polling.py: "
        "test_seven_rows_by_three_come_in_three_polls_of_an_instance_that_is_asked"
    ),
    "walstream/formats/encodings/protobuf/forms.py": (
        "unit/formats/encodings/protobuf/test_message_reader.py"
    ),
    "walstream/pipeline/outage.py": "unit/kafka/test_connection_errors.py",
    "walstream/records/producer_record.py": "unit/kafka/test_record_sink.py",
    "walstream/records/handlers/outbox_settings.py": (
        "unit/records/handlers/test_outbox_form.py"
    ),
    "walstream/sources/figures.py": "unit/sources/test_stream_metrics.py",
    "walstream/kafka/producer_trouble.py": (
        "integration/test_kafka_refuses.py: "
        "test_a_revoked_password_is_told_and_its_successor_read"
    ),
    "walstream/kafka/lent_login.py": (
        "integration/test_brokers_elsewhere.py: test_a_wrong_password_is_told_as_ever"
    ),
    "walstream/sources/kafka/record_relay.py": (
        "integration/test_chaining.py: test_records_pass_on_as_they_are"
    ),
    "walstream/sources/postgres/backfill/site.py": (
        "integration/test_backfill.py: "
        "test_rows_of_before_and_changes_of_meanwhile_are_the_table"
    ),
    "walstream/admin/check/row_schemas.py": (
        "integration/test_polled_registry.py: "
        "test_columns_become_versions_and_what_does_not_fit_stops_its_table"
    ),
    "walstream/formats/encodings/row/column.py": (
        "unit/formats/encodings/row/test_encoder.py"
    ),
    "walstream/admin/check/schemas.py": (
        "integration/test_registry.py: test_check_says_what_tables_would_register"
    ),
    "walstream/kafka/registry/errors.py": "unit/kafka/registry/test_client.py",
    "walstream/config/registry_rules.py": "unit/config/test_registry.py",
    "walstream/admin/check/routes.py": (
        "integration/test_check.py: test_partition_keys_are_cured_as_printed"
    ),
    "walstream/sources/kafka/partition_producers.py": (
        "fault/test_chaining.py: "
        "test_a_thawed_member_sends_nothing_behind_who_got_its_partitions"
    ),
    "walstream/kafka/transaction_batch.py": (
        "integration/test_transactional.py: test_a_transaction_in_parts_is_there_once"
    ),
    "walstream/kafka/transaction_plan.py": "unit/kafka/test_transaction_position.py",
    "walstream/kafka/transaction_check.py": (
        "integration/test_check_kafka_rights.py: "
        "test_rights_of_transactions_are_granted_as_printed"
    ),
    "walstream/kafka/partition_count.py": (
        "unit/kafka/test_bulk_producer.py: "
        "test_the_first_record_in_a_partition_is_acknowledged_alone"
    ),
    "walstream/kafka/topic_sink.py": (
        "fault/test_kill_cycles.py: test_sigkill_at_random_moments_loses_nothing"
    ),
    "walstream/kafka/transactional_producer.py": (
        "integration/test_transactional.py: test_a_transaction_in_parts_is_there_once"
    ),
    "walstream/kafka/debezium_sink.py": (
        "integration/test_debezium.py: "
        "test_changes_and_rows_of_before_are_debeziums_records"
    ),
    "walstream/postgres/column_facts.py": (
        "integration/test_column_facts.py: test_facts_are_those_of_the_catalog"
    ),
    "walstream/sources/postgres/session_stream.py": (
        "fault/test_kill_cycles.py: test_sigkill_at_random_moments_loses_nothing"
    ),
    "consumer/basic.py": "integration/test_consumer_basic.py: BasicConsumer",
    "consumer/mirror/table_identity.py": (
        "integration/test_mirror_keys.py: "
        "test_a_table_that_is_made_again_is_filled_again"
    ),
    "consumer/errors.py": "unit/consumer/test_error_text.py",
    "consumer/group/member.py": (
        "fault/test_consumer_group.py: "
        "test_instances_that_join_and_leave_apply_each_op_once"
    ),
    "consumer/idempotent.py": (
        "integration/test_consumer_idempotent.py: "
        "test_a_replay_from_the_first_record_changes_nothing"
    ),
    "consumer/state/value_store.py": (
        "integration/test_value_store.py: test_each_partition_has_its_own_rows"
    ),
    "consumer/whole/filled_ops.py": (
        "integration/test_value_store.py: "
        "test_ops_of_a_transaction_are_the_same_when_they_are_looked_at_again"
    ),
    "consumer/transactions.py": (
        "integration/test_consumer_transactions.py: "
        "test_a_restart_repeats_nothing_and_a_replay_neither"
    ),
    "consumer/whole/due.py": (
        "integration/test_consumer_transactions.py: "
        "test_backfilled_rows_come_behind_what_they_saw_and_before_the_next"
    ),
    "consumer/whole/explanation.py": (
        "unit/consumer/whole/test_assembler.py: "
        "test_records_that_nothing_tells_are_no_rest"
    ),
    "consumer/whole/group_state.py": (
        "integration/test_consumer_transactions.py: "
        "test_of_two_processes_of_a_group_one_takes_effect"
    ),
    "consumer/whole/intake.py": (
        "integration/test_consumer_transactions.py: "
        "test_another_source_waits_until_it_is_accepted"
    ),
    "consumer/whole/lane.py": "property/test_whole_transactions.py",
    "consumer/whole/open_transaction.py": "property/test_whole_transactions.py",
    "consumer/whole/partition_reader.py": (
        "integration/test_consumer_transactions.py: "
        "test_a_topic_that_comes_is_read_from_its_first_transaction_on"
    ),
    "consumer/whole/reader_session.py": (
        "integration/test_consumer_transactions.py: "
        "test_a_record_that_is_gone_stops_it_and_the_repair_goes_on"
    ),
    "consumer/whole/target_session.py": (
        "integration/test_consumer_transactions.py: "
        "test_a_session_that_is_ended_at_any_moment_repeats_and_loses_nothing"
    ),
    "consumer/whole/transaction.py": (
        "integration/test_consumer_transactions.py: WholeTransaction"
    ),
    "consumer/group/stop_signals.py": (
        "unit/consumer/test___main__.py: "
        "test_a_target_that_does_not_answer_is_told_and_waited_for"
    ),
    "consumer/mirror/transaction_mirror.py": (
        "integration/test_transaction_mirror_ops.py: TransactionMirror"
    ),
    "consumer/metrics.py": "integration/test_consumer_basic.py: Measure",
    "consumer/mirror/application.py": "integration/test_mirror_ops.py: PostgresMirror",
    "consumer/mirror/row_filler.py": (
        "integration/test_mirror_ops.py: "
        "test_what_an_update_left_out_is_read_from_the_target"
    ),
    "consumer/mirror/envelope.py": (
        "integration/test_mirror_debezium.py: test_a_row_goes_by_the_key_of_its_record"
    ),
    "consumer/mirror/position_batch.py": (
        "integration/test_mirror_order.py: "
        "test_a_batch_that_was_rolled_back_leaves_no_position"
    ),
    "consumer/mirror/source_generation.py": (
        "integration/test_mirror_moves.py: "
        "test_a_source_that_returns_is_newer_than_what_came_between"
    ),
    "consumer/mirror/table_choice.py": (
        "integration/test_mirror_ops.py: "
        "test_tables_that_no_pattern_names_are_passed_over"
    ),
    "consumer/mirror/table_shape.py": "integration/test_mirror_batches.py",
    "consumer/mirror/shape_cache.py": (
        "integration/test_mirror_altered.py: "
        "test_a_value_is_read_by_the_type_that_its_column_has_now"
    ),
    "consumer/mirror/table_writer.py": (
        "integration/test_mirror_ops.py: "
        "test_without_a_key_one_of_the_rows_that_look_alike_changes"
    ),
    "consumer/mirror/target_check.py": (
        "integration/test_mirror_ops.py: "
        "test_a_foreign_key_that_changes_rows_is_refused_at_the_start"
    ),
    "consumer/mirror/write_batch.py": (
        "integration/test_mirror_batches.py: "
        "test_many_at_once_come_to_the_same_as_one_by_one"
    ),
    "consumer/mirror/write_order.py": (
        "integration/test_mirror_ops.py: "
        "test_an_older_op_of_another_partition_takes_no_effect"
    ),
    "walstream/admin/backfill_offline.py": (
        "integration/test_backfill_again.py: test_tables_are_sent_again_in_their_place"
    ),
    "walstream/admin/backfill_request.py": "integration/test_beside.py",
    "walstream/admin/check/backfill.py": (
        "integration/test_backfill.py: operator.check(walstream)"
    ),
    "walstream/admin/check/debezium_keys.py": (
        "integration/test_debezium.py: test_check_names_a_key_of_a_type_without_a_form"
    ),
    "walstream/admin/check/kafka.py": (
        "integration/test_chaining.py: test_status_check_and_positions_know_the_group"
    ),
    "walstream/admin/check/run.py": (
        "integration/test_check.py: test_before_beside_and_after_a_run_it_would_start"
    ),
    "walstream/admin/check/sinks.py": (
        "integration/test_check.py: test_a_missing_topic_is_made_as_printed"
    ),
    "walstream/admin/reset.py": "integration/test_reset.py",
    "walstream/admin/rewind.py": "integration/test_rewind.py",
    "walstream/admin/slots.py": "integration/test_slots.py",
    "walstream/cli/backfill.py": (
        'integration/test_backfill_again.py: verb(walstream.configuration, "backfill"'
    ),
    "walstream/cli/check.py": "integration/test_check.py: walstream check",
    "walstream/cli/completion_servers.py": "integration/test_completion.py: completed",
    "walstream/cli/destroy.py": 'integration/test_destroy.py: "destroy"',
    "walstream/cli/init.py": 'integration/test_init.py: "init"',
    "walstream/cli/init_from.py": 'integration/test_init_from.py: "--from"',
    "walstream/cli/launch.py": (
        "fault/test_kill_cycles.py: test_sigterm_repeats_nothing"
    ),
    "walstream/cli/options.py": 'unit/cli/test_main.py: "--help"',
    "walstream/cli/poll.py": (
        "integration/test_polling.py: "
        "test_a_poll_without_an_instance_goes_on_where_the_last_one_ended"
    ),
    "walstream/cli/positions.py": 'integration/test_positions_show.py: "positions"',
    "walstream/cli/positions_kafka.py": (
        'integration/test_chaining.py: "positions", "show"'
    ),
    "walstream/cli/positions_sql.py": (
        "integration/test_polled_positions.py: "
        "test_both_sides_are_shown_and_fit_the_schema"
    ),
    "walstream/cli/run.py": 'integration/test_init.py: [_COMMAND, "run"]',
    "walstream/cli/slots.py": 'integration/test_slots.py: "slots"',
    "walstream/cli/tail/printer.py": 'integration/test_tail.py: "tail"',
    "walstream/cli/status.py": 'integration/test_status.py: "status"',
    "walstream/config/run_options.py": "unit/service/test_worker.py",
    "walstream/config/yaml_reader.py": (
        "unit/config/test_document.py: test_yaml_words_mean_what_they_look_like"
    ),
    "walstream/formats/context.py": "unit/formats/test_op.py",
    "walstream/kafka/cluster.py": (
        "integration/test_check_kafka_rights.py: "
        "test_rights_are_granted_as_printed_until_it_streams"
    ),
    "walstream/kafka/fencing.py": "integration/test_fencing.py",
    "walstream/kafka/group.py": "unit/kafka/test_group_consumer.py",
    "walstream/kafka/last_op.py": "integration/test_last_ops.py",
    "walstream/kafka/offsets.py": "unit/status/test_kafka.py",
    "walstream/kafka/topic_metadata.py": (
        "integration/test_chaining.py: test_topics_that_come_later_or_grow_are_followed"
    ),
    "walstream/pipeline/ports.py": "unit/pipeline/test_fanout.py",
    "walstream/postgres/capture.py": "integration/test_publication_watch.py",
    "walstream/postgres/capture_limits.py": (
        "integration/test_http.py: test_a_table_without_a_key_is_named_with_its_repair"
    ),
    "walstream/postgres/capture_warnings.py": (
        "integration/test_selection.py: "
        "test_an_excluded_partition_goes_out_as_its_root_and_is_named"
    ),
    "walstream/postgres/checks/context.py": (
        "integration/test_check_postgres_tables.py: look(database.dsn"
    ),
    "walstream/postgres/checks/open_transactions.py": (
        "integration/test_check_postgres_server.py"
    ),
    "walstream/postgres/checks/publications.py": (
        "integration/test_check_postgres_tables.py: "
        "test_operations_that_are_not_published_are_named"
    ),
    "walstream/postgres/checks/run.py": (
        "integration/test_check_postgres_server.py: "
        "test_a_question_that_is_refused_leaves_the_others"
    ),
    "walstream/postgres/checks/start.py": (
        "integration/test_check_postgres_start.py: "
        "test_a_source_that_has_streamed_goes_on_without_a_remark"
    ),
    "walstream/postgres/checks/toast.py": (
        "integration/test_check_postgres_tables.py: "
        "test_long_values_that_do_not_come_are_one_note"
    ),
    "walstream/postgres/preflight.py": (
        "integration/test_bad_input.py: "
        "test_a_slot_in_use_is_waited_for_and_can_be_taken_over"
    ),
    "walstream/postgres/publication_catalog.py": (
        "integration/test_publication_watch.py: "
        "test_a_change_that_may_keep_rows_out_is_noticed"
    ),
    "walstream/postgres/publication_watch.py": "integration/test_publication_watch.py",
    "walstream/postgres/server.py": (
        "integration/test_check_postgres_server.py: "
        "test_a_standby_stops_until_it_is_promoted_and_its_history_is_checked"
    ),
    "walstream/postgres/slot.py": "integration/test_slots.py",
    "walstream/postgres/slot_inventory.py": "integration/test_slots.py",
    "walstream/postgres/snapshot_holder.py": "integration/test_fencing.py",
    "walstream/postgres/spill.py": "integration/test_spill.py",
    "walstream/postgres/table_survey.py": (
        "integration/test_init.py: test_from_an_empty_folder_to_a_change_in_kafka"
    ),
    "walstream/postgres/timeline.py": (
        "fault/test_failover.py: "
        "test_a_row_that_was_sent_and_that_the_new_primary_lost_stops_the_source"
    ),
    "walstream/postgres/wal_search.py": (
        "integration/test_rewind_time.py: "
        "test_a_time_leads_to_the_first_that_was_not_committed_before_it"
    ),
    "walstream/records/encoding.py": "unit/pipeline/sinks/test_dry_run.py",
    "walstream/service/control_server.py": "unit/state/test_control.py",
    "walstream/service/http/protocol.py": "unit/service/http/test_server.py",
    "walstream/service/http/tables.py": (
        "unit/service/http/test_page.py: "
        "test_tables_have_heads_and_captions_and_states_have_words"
    ),
    "walstream/service/http/text.py": (
        "unit/service/http/test_app.py: test_stats_have_a_line_an_object"
    ),
    "walstream/service/worker_main.py": "unit/test_imports.py: worker_main",
    "walstream/sources/kafka/poison.py": (
        "integration/test_chaining.py: "
        "test_a_malformed_record_goes_aside_with_its_place_and_cause"
    ),
    "walstream/sources/kafka/relay.py": (
        "integration/test_chaining.py: "
        "test_a_restart_repeats_nothing_and_says_again_where_records_come_from"
    ),
    "walstream/sources/kafka/runner.py": (
        "integration/test_chaining.py: test_two_instances_share_a_group"
    ),
    "walstream/sources/plugin.py": "integration/test_packages.py: walstream.sources",
    "walstream/sources/postgres/backfill/fencing.py": (
        "integration/test_fencing.py: "
        "test_a_start_fences_what_an_earlier_one_left_before_it_streams"
    ),
    "walstream/sources/postgres/backfill/prerequisites.py": (
        "integration/test_backfill.py: test_without_java_nothing_is_created"
    ),
    "walstream/sources/postgres/backfill/publication_filter.py": (
        "integration/test_let_through.py"
    ),
    "walstream/sources/postgres/backfill/run.py": "integration/test_backfill.py",
    "walstream/sources/postgres/backfill/table.py": (
        "integration/test_planning.py: "
        "test_each_table_has_its_own_leaves_and_its_own_refusal"
    ),
    "walstream/sources/postgres/backfill/task_sink.py": (
        "integration/test_spark_chunks.py: "
        "test_every_row_arrives_once_numbered_by_chunk_and_index"
    ),
    "walstream/sources/postgres/backfill/condition.py": (
        "integration/test_backfill_part.py: "
        "test_a_part_that_cannot_be_read_is_refused_before_anything_begins"
    ),
    "walstream/sources/postgres/backfill/losses.py": (
        "integration/test_debezium.py: "
        "test_values_that_a_backfill_loses_are_logged_and_counted"
    ),
    "walstream/sources/postgres/requested_tables.py": (
        "integration/test_backfill_by_http.py: "
        "test_what_cannot_be_read_is_refused_with_the_reason"
    ),
    "walstream/sources/postgres/bootstrap.py": (
        "fault/test_first_start.py: "
        "test_killed_at_a_step_of_the_first_start_the_next_one_streams"
    ),
    "walstream/sources/postgres/detached/source_state.py": (
        "integration/test_detaching.py: "
        "test_a_sink_whose_kafka_hangs_is_detached_while_the_others_go_on"
    ),
    "walstream/sources/postgres/incremental/keyset_reader.py": (
        "integration/test_keyset.py"
    ),
    "walstream/sources/postgres/session.py": (
        "fault/test_kill_cycles.py: test_sigkill_at_random_moments_loses_nothing"
    ),
    "walstream/sources/postgres/stream.py": (
        "fault/test_postgres_lifecycle.py: test_a_terminated_walsender_is_replaced"
    ),
    "walstream/sources/sql/database/open_transactions.py": (
        "integration/test_sql_marks.py"
    ),
    "walstream/sources/sql/database/psycopg2_text.py": (
        "integration/test_sql_postgres.py: psycopg2"
    ),
    "walstream/sources/sql/database/psycopg_text.py": (
        "integration/test_sql_postgres.py: "
        "test_text_that_is_none_of_its_encoding_is_read"
    ),
    "walstream/sources/sql/database/search_path.py": (
        "integration/test_sql_postgres.py: "
        "test_names_are_looked_up_by_the_roles_path_and_printed_without_it"
    ),
    "walstream/sources/sql/database/sequence.py": (
        "integration/test_sql_marks.py: test_keys_that_others_give_are_never_settled"
    ),
    "walstream/sources/sql/runner.py": (
        "integration/test_polled_run.py: "
        "test_a_database_that_is_away_is_said_once_and_a_stop_ends_at_once"
    ),
    "walstream/sources/sql/task_factory.py": (
        "integration/test_polling.py: "
        "test_seven_rows_by_three_come_in_three_polls_of_an_instance_that_is_asked"
    ),
    "walstream/spark/driver/__main__.py": (
        "integration/test_polling_beside.py: "
        "test_one_spark_serves_a_backfill_and_the_polls_of_two_other_sources"
    ),
    "walstream/spark/driver/messages.py": "unit/spark/driver/test_client.py",
    "walstream/spark/jobs.py": "integration/test_spark_chunks.py",
    "walstream/spark/outcome.py": "unit/sources/sql/test_range_runner.py",
    "walstream/spark/prerequisites.py": (
        "integration/test_polled_check.py: "
        "test_a_machine_without_java_is_told_what_to_install"
    ),
    "walstream/status/lookup/detached.py": (
        'integration/test_detaching.py: as_json(configuration, "status"'
    ),
    "walstream/status/lookup/kafka.py": (
        "integration/test_chaining.py: test_status_check_and_positions_know_the_group"
    ),
    "walstream/status/lookup/sources.py": (
        "integration/test_polled_run.py: "
        "test_what_runs_is_told_and_goes_back_when_it_is_asked"
    ),
    "walstream/status/lookup/postgres.py": (
        "integration/test_status.py: test_before_while_and_after_a_run"
    ),
    "walstream/status/positions/audit.py": (
        "integration/test_positions_audit.py: "
        "test_what_a_killed_one_delivered_is_left_out"
    ),
    "walstream/status/positions/audit_model.py": (
        "unit/status/positions/test_audit_sum.py"
    ),
    "walstream/status/positions/kafka.py": (
        'integration/test_chaining.py: "positions", "show"'
    ),
    "walstream/status/positions/model.py": "unit/status/positions/test_verdict.py",
    "walstream/status/positions/postgres.py": (
        "integration/test_positions_show.py: test_each_side_shows_what_it_knows"
    ),
    "walstream/status/postgres.py": (
        "unit/service/http/test_app.py: test_the_page_says_the_same"
    ),
    "walstream/status/status.py": (
        "unit/service/http/test_app.py: "
        "test_status_is_red_for_all_that_does_not_flow_and_names_it"
    ),
    "walstream/telemetry/fields.py": (
        'unit/pipeline/sinks/test_handler.py: line["table"]'
    ),
}
_SERVED = ("walstream/cli/demo/",)  # run as a whole: tests/integration/test_demo.py


def test_every_module_has_a_unit_test_of_its_name() -> None:
    missing = {
        str(module)
        for module in modules()
        if not unit_test_of(module).exists() and not str(module).startswith(_SERVED)
    }
    assert missing == DRIVEN_BY.keys()


@pytest.mark.parametrize("module", DRIVEN_BY)
def test_what_is_named_drives_the_module(module: str) -> None:
    assert not lack(module, DRIVEN_BY[module])


@pytest.mark.parametrize(
    "driver",
    [
        "unit/postgres/test_nowhere.py",  # no such file
        "integration/test_reset.py",  # does not import it
        "integration/test_slots.py: test_a_name_of_before",
        "integration/test_slots.py: ",
    ],
)
def test_a_wrong_name_is_noticed(driver: str) -> None:
    assert lack("walstream/admin/slots.py", driver)


def lack(module: str, driver: str) -> str:
    """Return what keeps a test file from driving a module; empty: nothing."""
    name, colon, word = driver.partition(": ")
    file = ROOT / "tests" / name
    if not file.is_file():
        return f"there is no tests/{name}"
    if colon:
        has_word = word and word in file.read_text("utf-8")
        return "" if has_word else f"tests/{name} has no {word!r}"
    dotted = module.removesuffix(".py").replace("/", ".")
    return "" if dotted in imports(file) else f"tests/{name} does not import {dotted}"


def imports(file: Path) -> set[str]:
    return set(_imported(ast.parse(file.read_text("utf-8"))))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
