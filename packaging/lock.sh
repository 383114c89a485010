#!/bin/bash
# Pins what the packages bundle, and what builds them, each file with its hash.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=build/lock
if [ ! -x "$tools/bin/pip-compile" ]; then
  "${PYTHON:-/usr/bin/python3}" -m venv "$tools"
  "$tools/bin/python" -m pip install -q 'pip-tools>=7.5,<8'
fi
lock() {
  "$tools/bin/pip-compile" -q --upgrade --generate-hashes --strip-extras --no-header \
    --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host "$@"
}
lock --extra mysql --extra registry -o packaging/requirements.lock pyproject.toml
grep -o 'pyspark[^"]*' pyproject.toml | head -1 |
  lock -o packaging/spark.lock -
# of the versions above: the packages bundle each library once
"${PYTHON:-/usr/bin/python3}" packaging/consumer/stage.py build/consumer
lock --constraint packaging/requirements.lock --extra lmdb --extra registry -o packaging/consumer.lock \
  build/consumer/pyproject.toml
for tools in tools release; do
  lock --allow-unsafe -o "packaging/$tools.lock" "packaging/$tools.in"
done
