#!/bin/bash
# The files of a release, from what was built into dist/: packaging/release.sh
#
# Wheels that name this platform as "linux" get the manylinux name that they may carry;
# each lock gets its bill of materials; SHA256SUMS comes last.
#   packaging/release.sh audit   only look the locked versions up: known vulnerabilities
#   PYTHON   that runs the tools, python3 unless said
#   OUT      folder of the files, dist unless said
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
OUT=${OUT:-dist}
TOOLS=$PWD/build/release
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
declare -A BUNDLED=([walstream]=requirements [walstream-spark]=spark
  [walstream-consumer]=consumer)

tools() { # pinned, too: they see everything that is published
  if ! cmp -s packaging/release.lock "$TOOLS/lock"; then
    rm -rf "$TOOLS"
    "${PYTHON:-python3}" -m venv "$TOOLS"
    "$TOOLS/bin/python" -m pip install -q --require-hashes -r packaging/release.lock
    cp packaging/release.lock "$TOOLS/lock"
  fi
}

audit() { # strict: a version that could not be looked up is an error, not a good one
  for lock in packaging/*.lock; do
    echo "looking up the versions of $lock"
    "$TOOLS/bin/pip-audit" --strict --require-hashes --disable-pip --progress-spinner off \
      -r "$lock"
  done
}

repair() {
  for wheel in "$OUT"/*-linux_*.whl; do
    [ -e "$wheel" ] || continue
    PATH=$TOOLS/bin:$PATH "$TOOLS/bin/auditwheel" repair -w "$OUT" "$wheel"
    rm "$wheel"
  done
}

bills() {
  version=$("$TOOLS/bin/python" -c 'import tomllib
print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
  for name in "${!BUNDLED[@]}"; do
    "$TOOLS/bin/cyclonedx-py" requirements --output-reproducible --of JSON \
      -o "$OUT/$name-$version.cdx.json" "packaging/${BUNDLED[$name]}.lock"
  done
}

checksums() { # of everything but the sums themselves
  rm -f "$OUT/SHA256SUMS"
  sums=$(cd "$OUT" && find . -maxdepth 1 -type f ! -name '.*' -printf '%f\0' |
    LC_ALL=C sort -z | xargs -0 sha256sum)
  echo "$sums" >"$OUT/SHA256SUMS"
}

mkdir -p build
tools
if [ "${1:-}" = audit ]; then
  audit
else
  compgen -G "$OUT/*" >/dev/null || { echo "nothing in $OUT: make dist package" >&2; exit 2; }
  repair
  bills
  "$TOOLS/bin/twine" check --strict "$OUT"/*.whl "$OUT"/*.tar.gz
  checksums
fi
