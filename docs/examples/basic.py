"""At least once: print each change of a table.

python docs/examples/basic.py localhost:9092 public.orders
"""

import sys
from decimal import Decimal

from consumer import BasicConsumer, Kind, Op


def handle(op: Op) -> None:
    if op.kind is Kind.TRUNCATE:
        line = "all orders are gone"
    elif op.kind is Kind.DELETE:
        line = f"gone: {op.old['id']}"
    else:
        line = f"{op.kind.value} {op.new['id']} {op.new.get('amount', Decimal)}"
    sys.stdout.write(f"{line}\n")  # at once: other partitions are in other threads
    sys.stdout.flush()


def main() -> None:
    kafka, topic = sys.argv[1:]
    consumer = BasicConsumer(
        handle, group="example", topics=[topic], kafka={"bootstrap.servers": kafka}
    )
    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
