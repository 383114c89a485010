"""The advisory lock's number."""

import pytest

from consumer.state.advisory_lock import lock_key


@pytest.mark.parametrize(
    ("group", "topic", "partition", "key"),
    [
        ("alpha", "inventory", 0, 1717020161730880049),
        ("g", "t", 3, 3049513780380831727),
    ],
)
def test_keys_are_those_of_sqlx(
    group: str, topic: str, partition: int, key: int
) -> None:
    assert lock_key(group, topic, partition) == key


def test_keys_are_signed_64_bit_numbers() -> None:
    keys = [lock_key("g", "t", partition) for partition in range(100)]
    assert min(keys) < 0 < max(keys)
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert len(set(keys)) == 100
