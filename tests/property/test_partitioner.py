"""Many keys at a time go where each goes by itself."""

from hypothesis import given
from hypothesis import strategies as st

from walstream.records.partitioner import PARTITIONERS, for_all, murmur2_of_all

# few lengths, so that there are many keys of some
SEVERAL = st.lists(st.binary(min_size=6, max_size=8), min_size=48, max_size=90)
ANY = st.lists(st.binary(max_size=9) | st.just(b"k" * 1500), max_size=20)
KEYS = st.tuples(SEVERAL, ANY).map(lambda both: both[0] + both[1]) | ANY
PARTITIONS = st.integers(1, 2**31)


@given(KEYS, PARTITIONS)
def test_murmur2_of_all_is_that_of_each(keys: list[bytes], partitions: int) -> None:
    each = PARTITIONERS["murmur2"]
    assert murmur2_of_all(keys, partitions) == [each(key, partitions) for key in keys]


@given(
    st.integers(0, 19).flatmap(
        lambda size: st.lists(
            st.binary(min_size=size, max_size=size), min_size=16, max_size=90
        )
    )
)
def test_murmur2_of_keys_of_one_length_is_that_of_each(keys: list[bytes]) -> None:
    each = PARTITIONERS["murmur2"]
    assert murmur2_of_all(keys, 2**31) == [each(key, 2**31) for key in keys]


@given(KEYS, PARTITIONS, st.sampled_from(sorted(set(PARTITIONERS) - {"random"})))
def test_for_all_is_the_partitioner_of_that_name(
    keys: list[bytes], partitions: int, name: str
) -> None:
    each = PARTITIONERS[name]
    assert for_all(name)(keys, partitions) == [each(key, partitions) for key in keys]
