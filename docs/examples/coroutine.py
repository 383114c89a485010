"""At least once, with asyncio: look up the orders of a batch concurrently.

python docs/examples/coroutine.py localhost:9092 public.orders
"""

import asyncio
import sys
from collections.abc import Sequence

from consumer import BasicConsumer, Kind, Op


class Prices:
    """A partition waits for its batch; within one, what is gathered runs at once."""

    async def handle_batch(self, ops: Sequence[Op]) -> None:
        orders = [op for op in ops if op.kind in (Kind.INSERT, Kind.UPDATE)]
        prices = await asyncio.gather(*map(self._price, orders))
        for op, price in zip(orders, prices, strict=True):
            sys.stdout.write(f"{op.new.get('id', int)} costs {price}\n")
        sys.stdout.flush()

    async def _price(self, op: Op) -> str | None:
        await asyncio.sleep(0.05)  # a request to another service
        return op.new["amount"]


def main() -> None:
    kafka, topic = sys.argv[1:]
    consumer = BasicConsumer(
        Prices(), group="prices", topics=topic, kafka={"bootstrap.servers": kafka}
    )
    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
