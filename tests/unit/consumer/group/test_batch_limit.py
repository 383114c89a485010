"""How large the batches are around an op that fails."""

from consumer.group.batch_limit import BatchLimit


def test_a_failing_batch_is_halved_until_one_op_is_alone() -> None:
    limit = BatchLimit(100)
    sizes, count = [], 100
    while limit.failed(count):
        count = limit.now
        sizes.append(count)
    assert sizes == [50, 25, 12, 6, 3, 1]
    assert limit.now == 1


def test_batches_grow_again_up_to_the_most() -> None:
    limit = BatchLimit(5)
    limit.failed(2)
    sizes = []
    for _ in range(4):
        sizes.append(limit.now)
        limit.succeeded()
    assert sizes == [1, 2, 4, 5]
