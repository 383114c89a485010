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
# a lock without Spark, which has its own: the note at its end says what pip would miss
lock --extra mysql --unsafe-package pyspark --unsafe-package py4j \
  -o packaging/requirements.lock pyproject.toml
sed -i '/^# WARNING/,$d' packaging/requirements.lock
grep -o 'pyspark[^"]*' pyproject.toml | head -1 |
  lock -o packaging/spark.lock -
for tools in tools release; do
  lock --allow-unsafe -o "packaging/$tools.lock" "packaging/$tools.in"
done
