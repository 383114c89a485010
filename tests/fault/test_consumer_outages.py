"""PostgreSQL or Kafka going away and coming back: consumers go on by themselves."""

import pytest

from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.programs.consumer_thread import Setting


def fed(setting: Setting, count: int) -> None:
    feed = setting.feed
    for number in range(setting.sent, setting.sent + count):
        feed.insert(number)
    feed.flush()
    setting.sent += count


def test_a_restart_of_postgres_is_survived(
    own_postgres: OwnPostgres, kafka: KafkaServer, topic_prefix: str
) -> None:
    server = own_postgres(18)
    setting = Setting(kafka, Database(server), f"{topic_prefix}item")
    setting.make()
    with setting.running():
        fed(setting, 10)
        setting.until(10)
        server.stop()
        fed(setting, 10)
        server.start()
        setting.until(20)


@pytest.mark.fault_long
def test_a_restart_of_kafka_is_survived(
    own_kafka: OwnKafka, database: Database, topic_prefix: str
) -> None:
    broker = own_kafka()
    setting = Setting(broker, database, f"{topic_prefix}item")
    setting.make()
    with setting.running():
        fed(setting, 10)
        setting.until(10)
        broker.stop()
        broker.start()
        fed(setting, 10)
        setting.until(20)
