"""The made-up load: repeatable, and with all that the demo is to show."""

from walstream.cli.demo.workload import Statement, Trade


def statements(seed: int, transactions: int = 3000) -> list[Statement]:
    trade = Trade(seed)
    made = [*trade.opening(), *(trade.transaction() for _ in range(transactions))]
    return [statement for transaction in made for statement in transaction]


def test_same_seed_makes_the_same_load() -> None:
    assert statements(7, 300) == statements(7, 300)
    assert statements(7, 300) != statements(8, 300)


def test_load_inserts_updates_deletes_changes_keys_and_rolls_back() -> None:
    texts = {statement.text for statement in statements(1)}
    for beginning in (
        "INSERT INTO shop.orders",
        "INSERT INTO shop.page_views",
        "DELETE FROM shop.orders",
        "UPDATE shop.products SET stock",
        "UPDATE shop.products SET description",
        "UPDATE shop.products SET sku",
        "ROLLBACK TO SAVEPOINT",
    ):
        assert any(text.startswith(beginning) for text in texts), beginning


def test_descriptions_are_long_enough_to_be_toasted() -> None:
    descriptions = [
        str(statement.values[-1])
        for statement in statements(1, 0)
        if "shop.products" in statement.text
    ]
    assert descriptions
    assert all(len(text) > 4000 for text in descriptions)


def test_shelves_are_filled_once() -> None:
    trade = Trade(1)
    assert trade.opening()
    assert trade.opening() == []


def test_open_orders_stay_few() -> None:
    orders = [
        1 if statement.text.startswith("INSERT") else -1
        for statement in statements(1, 10_000)
        if statement.text.startswith(
            ("INSERT INTO shop.orders", "DELETE FROM shop.orders")
        )
    ]
    assert 0 < sum(orders) <= 401
