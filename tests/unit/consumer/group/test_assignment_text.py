"""What a member says that it reads."""

from consumer.group.assigned_partition import Place
from consumer.group.assignment_text import assignment_text


def test_topics_are_named_with_their_partitions() -> None:
    assert assignment_text([Place("shop.orders", 0)]) == "shop.orders, 1 partition"
    assert assignment_text([Place("b", 0), Place("a", 1), Place("b", 7)]) == (
        "a, 1 partition; b, 2 partitions; 3 partitions in all"
    )


def test_many_topics_are_counted() -> None:
    places = [Place(f"t{number}", 0) for number in range(8)]
    assert assignment_text(places).endswith(
        "t4, 1 partition; and 3 more topics; 8 partitions in all"
    )


def test_a_member_without_partitions_says_why() -> None:
    assert assignment_text([]).startswith("no partition: other members have them")
