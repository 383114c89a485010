"""What is read of a topic; tests/integration asks brokers."""

import pytest

from walstream.kafka.topics import retention_ms


@pytest.mark.parametrize(
    ("policy", "kept"),
    [("delete", 1000), ("compact,delete", 1000), ("compact", -1), ("", -1)],
)
def test_a_topic_that_is_only_compacted_deletes_nothing_by_age(
    policy: str, kept: int
) -> None:
    assert retention_ms(policy, "1000") == kept
