"""Rules of transactional delivery, taken out of walstream."""

import contextlib
from typing import Any

from confluent_kafka import KafkaException

from walstream.kafka.open_transaction import OpenTransactions
from walstream.kafka.transaction_batch import TransactionBatch
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.kafka.transactional_producer import TransactionalProducer

Patch = tuple[object, str, object]


def delivered_before_committed() -> Patch:
    seal = TransactionalProducer._seal

    def patched(
        self: TransactionalProducer, batch: TransactionBatch, *, whole: bool
    ) -> bool:
        for transaction, share in batch.shares.items():
            transaction.undelivered -= share.records
            share.records = 0
        return seal(self, batch, whole=whole)

    return TransactionalProducer, "_seal", patched


def committed_ops_sent_again() -> Patch:
    has = DeliveredTransactions.has

    def patched(self: DeliveredTransactions, *given: Any) -> bool:
        has(self, *given)
        return False

    return DeliveredTransactions, "has", patched


def committed_in_parts() -> Patch:
    return TransactionBatch, "is_whole", lambda *_: True


def open_ones_not_ended() -> Patch:
    return OpenTransactions, "end_ops", lambda *_: None


def ended_by_whoever_closes() -> Patch:
    close = TransactionalProducer.close

    def patched(self: TransactionalProducer, wait_s: float) -> None:
        is_open = bool(self._batch.shares) and self._failure is None
        close(self, wait_s)
        if is_open:
            with contextlib.suppress(KafkaException):
                self._kafka.abort_transaction(1.0)

    return TransactionalProducer, "close", patched
