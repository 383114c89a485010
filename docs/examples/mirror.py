"""Keep a table of another database identical.

pg_dump --schema-only --table=public.orders SOURCE | psql TARGET
python docs/examples/mirror.py localhost:9092 public.orders TARGET
"""

import logging
import sys

from consumer import IdempotentConsumer, PostgresMirror


def main() -> None:
    logging.basicConfig()  # the start names what in the target may refuse a change
    kafka, topic, target = sys.argv[1:]
    mirror = PostgresMirror(target, tables=["public.*"])
    consumer = IdempotentConsumer(
        mirror,
        target,
        group="mirror",
        topics=[topic],
        kafka={"bootstrap.servers": kafka},
    )
    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
