"""Workload of the shop: transactions made up from a seed, as statements.

It knows what the tables hold, so it never reads them. Values depend on the seed
alone; each statement says how many rows it changes.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

_FIRST_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)
_DAYS: Final = 80  # over all partitions of page_views
_DESCRIPTION_BYTES: Final = 8000
_PRODUCTS: Final = 60
_CUSTOMERS: Final = 40
_OPEN_ORDERS: Final = 400  # more are not kept: the oldest is cancelled
_VIEWS: Final = 2000
_STATUSES: Final = {"new": "paid", "paid": "packed", "packed": "shipped"}
_CITIES: Final = ("Lagos", "Lima", "Łódź", "Osaka", "Oslo", "Quito", "Zürich", None)
_NAMES: Final = (
    "Ada",
    "Bo",
    "Chidi",
    "Dana",
    "Eun-ji",
    "Femi",
    "Grace",
    "Hugo",
    "Iñés",
)
_FAMILIES: Final = (
    "Abiola",
    "Brandt",
    "Cruz",
    "Diaz",
    "Eze",
    "Fuchs",
    "Kim",
    "O'Neill",
)
_THINGS: Final = ("kettle", "lamp", "chair", "teapot", "rug", "clock", "vase", "stool")
_KINDS: Final = ("oak", "brass", "linen", "blue", "small", "folding", "old", "glass")
_WORDS: Final = (*_THINGS, *_KINDS, "with", "and", "for", "made", "by", "hand", "in")
_PATHS: Final = ("/", "/sale", "/new", "/search?q=lamp", "/basket", "/help")


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    values: tuple[object, ...] = ()
    rows: int = 1  # changed by it, where it lasts


Transaction = list[Statement]


@dataclass(slots=True)
class _Order:
    customer: int
    lines: int
    status: str = "new"


@dataclass(slots=True)
class Trade:
    seed: int
    _random: random.Random = field(init=False)
    _skus: list[str] = field(default_factory=list)
    _stock: dict[str, int] = field(default_factory=dict)
    _cities: dict[int, str | None] = field(default_factory=dict)  # by customer
    _orders: dict[int, _Order] = field(default_factory=dict)
    _views: dict[int, datetime] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: count(1001))

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - made-up shopping

    def opening(self) -> list[Transaction]:
        """Fill the shelves: the first transactions, once."""
        if self._skus:
            return []
        shelves = [self._new_product() for _ in range(_PRODUCTS)]
        people = [self._new_customer() for _ in range(_CUSTOMERS)]
        return [
            *(shelves[first : first + 10] for first in range(0, _PRODUCTS, 10)),
            *(people[first : first + 10] for first in range(0, _CUSTOMERS, 10)),
        ]

    def transaction(self) -> Transaction:
        """Make up the next one."""
        if len(self._orders) > _OPEN_ORDERS:
            return self._cancel(next(iter(self._orders)))
        deeds: dict[Callable[[], Transaction], int] = {  # how often, of a hundred
            self._order: 30,
            self._proceed: 25,
            self._browse: 20,
            self._leave_page: 10,
            self._move: 5,
            self._change_of_mind: 4,
            self._rewrite: 3,
            self._join: 2,
            self._rename: 1,
        }
        (deed,) = self._random.choices(list(deeds), list(deeds.values()))
        return deed()

    def _order(self) -> Transaction:
        number, lines = next(self._ids), self._random.randint(1, 4)
        customer = self._random.choice(list(self._cities))
        self._orders[number] = _Order(customer, lines)
        bought = self._random.sample(self._skus, lines)
        quantities = [self._random.randint(1, 3) for _ in bought]
        total = f"{self._random.randint(500, 50_000) / 100:.2f}"
        return [
            Statement(
                "INSERT INTO shop.orders VALUES (%s, %s, 'new', %s, %s)",
                (number, customer, total, self._moment()),
            ),
            *(
                Statement(
                    "INSERT INTO shop.order_lines VALUES (%s, %s, %s, %s)",
                    (number, line, sku, quantity),
                )
                for line, (sku, quantity) in enumerate(
                    zip(bought, quantities, strict=True), start=1
                )
            ),
            *(
                self._restock(sku, -quantity)
                for sku, quantity in zip(bought, quantities, strict=True)
            ),
        ]

    def _restock(self, sku: str, difference: int) -> Statement:
        self._stock[sku] += difference
        return Statement(
            "UPDATE shop.products SET stock = %s WHERE sku = %s",
            (self._stock[sku], sku),
        )

    def _proceed(self) -> Transaction:
        if not self._orders:
            return self._order()
        number = self._random.choice(list(self._orders))
        order = self._orders[number]
        if order.status not in _STATUSES:
            return self._cancel(number)
        order.status = _STATUSES[order.status]
        return [
            Statement(
                "UPDATE shop.orders SET status = %s WHERE id = %s",
                (order.status, number),
            )
        ]

    def _cancel(self, number: int) -> Transaction:
        order = self._orders.pop(number)
        return [
            Statement(
                "DELETE FROM shop.order_lines WHERE order_id = %s",
                (number,),
                rows=order.lines,
            ),
            Statement("DELETE FROM shop.orders WHERE id = %s", (number,)),
        ]

    def _browse(self) -> Transaction:
        made = []
        for _ in range(self._random.randint(1, 3)):
            number = next(self._ids)
            self._views[number] = self._moment()
            path = self._random.choice(_PATHS)
            made.append(
                Statement(
                    "INSERT INTO shop.page_views VALUES (%s, %s, %s, NULL)",
                    (number, self._views[number], path),
                )
            )
        while len(self._views) > _VIEWS:
            made.append(self._forget(next(iter(self._views))))
        return made

    def _forget(self, number: int) -> Statement:
        return Statement(
            "DELETE FROM shop.page_views WHERE id = %s AND viewed_at = %s",
            (number, self._views.pop(number)),
        )

    def _leave_page(self) -> Transaction:
        if not self._views:
            return self._browse()
        number = self._random.choice(list(self._views))
        return [
            Statement(
                "UPDATE shop.page_views SET seconds = %s"
                " WHERE id = %s AND viewed_at = %s",
                (self._random.randint(1, 600), number, self._views[number]),
            )
        ]

    def _new_customer(self) -> Statement:
        number = next(self._ids)
        self._cities[number] = self._random.choice(_CITIES)
        name = f"{self._random.choice(_NAMES)} {self._random.choice(_FAMILIES)}"
        return Statement(
            "INSERT INTO shop.customers VALUES (%s, %s, %s, %s)",
            (number, name, self._cities[number], self._moment().date()),
        )

    def _join(self) -> Transaction:
        return [self._new_customer()]

    def _move(self) -> Transaction:
        number = self._random.choice(list(self._cities))
        others = [one for one in _CITIES if one != self._cities[number]]
        city = self._cities[number] = self._random.choice(others)
        return [
            Statement(
                "UPDATE shop.customers SET city = %s WHERE id = %s", (city, number)
            )
        ]

    def _new_product(self) -> Statement:
        sku = self._new_sku()
        self._skus.append(sku)
        self._stock[sku] = self._random.randint(100, 999)
        name = f"{self._random.choice(_KINDS)} {self._random.choice(_THINGS)}"
        price = f"{self._random.randint(500, 90_000) / 100:.2f}"
        return Statement(
            "INSERT INTO shop.products VALUES (%s, %s, %s, %s, %s)",
            (sku, name, price, self._stock[sku], self._description()),
        )

    def _rewrite(self) -> Transaction:
        return [
            Statement(
                "UPDATE shop.products SET description = %s WHERE sku = %s",
                (self._description(), self._random.choice(self._skus)),
            )
        ]

    def _rename(self) -> Transaction:
        """Change a key, and leave the toasted text alone."""
        place = self._random.randrange(len(self._skus))
        old, new = self._skus[place], self._new_sku()
        self._skus[place] = new
        self._stock[new] = self._stock.pop(old)
        return [
            Statement(
                "UPDATE shop.products SET sku = %s WHERE sku = %s", (new, old), rows=2
            )
        ]

    def _change_of_mind(self) -> Transaction:
        """Roll a part back: it must never be seen in Kafka."""
        number, sku = next(self._ids), self._random.choice(self._skus)
        return [
            Statement("SAVEPOINT basket", rows=0),
            Statement(
                "INSERT INTO shop.order_lines VALUES (%s, 1, %s, 1)",
                (number, sku),
                rows=0,
            ),
            Statement(
                "UPDATE shop.products SET stock = 0 WHERE sku = %s", (sku,), rows=0
            ),
            Statement("ROLLBACK TO SAVEPOINT basket", rows=0),
            *self._leave_page(),
        ]

    def _new_sku(self) -> str:
        return f"{self._random.choice('ABCDEFGH')}-{next(self._ids)}"

    def _description(self) -> str:
        words = self._random.choices(_WORDS, k=_DESCRIPTION_BYTES // 5)
        return " ".join(words)[:_DESCRIPTION_BYTES]

    def _moment(self) -> datetime:
        return _FIRST_DAY + timedelta(
            milliseconds=self._random.randrange(_DAYS * 24 * 3600 * 1000)
        )
