#!/bin/bash
# The packages walstream, walstream-spark and walstream-consumer: packaging/build.sh deb rpm
# In a container, whose /opt is nobody else's: packaging/build.sh install walstream|spark;
# packaging/build.sh fetch requirements gets what that needs, before there are sources.
#
# Same sources and same Python, same bytes. The environment is made at its final path,
# /opt/walstream, in a mount namespace: nothing of this machine's /opt is touched.
#   PYTHON   of the system that it is for, /usr/bin/python3 unless said
#   RELEASE  of the package, 1 unless said
#   ONLY     the one package to make
#   FRESH    1: compile walstream again, though its sources are the same
#   OUT      folder of the packages, dist unless said
#   GO       for nFPM, which is pinned here; or NFPM, a command that is one
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
if [ "${1:-}" != inside ]; then
  PYTHON=$(readlink -f "${PYTHON:-/usr/bin/python3}")
  read -r PYTHON_MINOR < <("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  PYTHON_NEXT=${PYTHON_MINOR%.*}.$((${PYTHON_MINOR#*.} + 1))
  VERSION=$("$PYTHON" -c 'import tomllib
print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
  RELEASE=${RELEASE:-1}
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  BUILD_DATE=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
  WORK=$PWD/build/package
  STAGE=$WORK/root
  OUT=${OUT:-dist}
  TOOLS=$(readlink -m "$WORK/tools") # it may be a link, to what another folder made
  WHEELS=$WORK/wheels
  case $(uname -m) in x86_64) ARCH=amd64 ;; aarch64) ARCH=arm64 ;; *) ARCH=$(uname -m) ;; esac
  export PYTHON PYTHON_MINOR PYTHON_NEXT VERSION RELEASE SOURCE_DATE_EPOCH BUILD_DATE WORK STAGE
  export TOOLS WHEELS ARCH PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
  export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
fi

tools() { # what builds: locked too. Its scripts name its folder: moved, it is made again
  wanted=$(cat packaging/tools.lock && echo "$TOOLS")
  if [ "$wanted" != "$(cat "$TOOLS/lock" 2>/dev/null)" ]; then
    rm -rf "$TOOLS"
    "$PYTHON" -m venv "$TOOLS"
    "$TOOLS/bin/python" -m pip install -q --require-hashes -r packaging/tools.lock
    echo "$wanted" >"$TOOLS/lock"
  fi
}

own() { # walstream itself, compiled
  rm -rf "$WORK/source" "$WORK/compiled"
  mkdir -p "$WORK/source" "$WHEELS"
  cp -r --parents walstream consumer packaging/consumer packaging/hatch_build.py pyproject.toml README.md LICENSE \
    "$WORK/source"
  find "$WORK/source" \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +
  if [ -n "${FRESH:-}" ] || ! diff -rq "$WORK/source" "$WHEELS/own/source" >/dev/null 2>&1; then
    rm -rf "$WHEELS/own"
    mkdir -p "$WHEELS/own"
    cp -r "$WORK/source" "$WORK/compiled" # compiling leaves its own files behind
    PATH=$TOOLS/bin:$PATH HATCH_BUILD_HOOKS_ENABLE=1 "$TOOLS/bin/python" -m pip wheel -q \
      --no-deps --no-build-isolation -w "$WHEELS/own" "$WORK/compiled"
    mv "$WORK/source" "$WHEELS/own/source"
  fi
  rm -rf "$WORK/source" "$WORK/compiled"
}

own_consumer() {
  rm -rf "$WHEELS/consumer"
  "$TOOLS/bin/python" packaging/consumer/stage.py "$WORK/consumer"
  "$TOOLS/bin/python" -m pip wheel -q --no-deps --no-build-isolation -w "$WHEELS/consumer" \
    "$WORK/consumer"
}

locked() { # what is bundled beside it, as its lock says
  for lock in "$@"; do
    if ! cmp -s "packaging/$lock.lock" "$WHEELS/$lock/lock"; then
      rm -rf "${WHEELS:?}/$lock"
      PATH=$TOOLS/bin:$PATH "$TOOLS/bin/python" -m pip wheel -q --require-hashes \
        --no-deps --no-build-isolation -w "$WHEELS/$lock" -r "packaging/$lock.lock"
      cp "packaging/$lock.lock" "$WHEELS/$lock/lock"
    fi
  done
}

inside() { # in a namespace where /opt is the stage's
  unset PIP_FIND_LINKS # of this machine: it may lie in /opt
  mount --bind "$STAGE/opt" /opt
  install_walstream
  install_spark
  install_consumer
}

into=("$TOOLS/bin/python" -m pip --python /opt/walstream/bin/python install -q
  --no-index --no-deps --no-compile)
doc=$STAGE/usr/share/doc

install_walstream() {
  site=/opt/walstream/lib/python$PYTHON_MINOR/site-packages
  "$PYTHON" -m venv --without-pip /opt/walstream
  # by name: a wheel's path would stand in what is installed. pip wheel checked the hashes
  "${into[@]}" --find-links "$WHEELS/requirements" $(pinned requirements)
  "${into[@]}" --find-links "$WHEELS/own" "walstream==$VERSION"
  find /opt/walstream/bin -mindepth 1 ! -name 'python*' ! -name walstream -delete
  rm -rf /opt/walstream/include
  mkdir -p "$doc/walstream/examples"
  "$TOOLS/bin/cyclonedx-py" environment --output-reproducible --pyproject pyproject.toml \
    --of JSON -o "$doc/walstream/sbom.cdx.json" /opt/walstream/bin/python
  described walstream "$site"
  pages
  compile_all walstream/lib
}

install_spark() {
  "${into[@]}" --find-links "$WHEELS/spark" --target /opt/walstream-spark $(pinned spark)
  rm -rf /opt/walstream-spark/bin
  mkdir -p "$doc/walstream-spark"
  "$TOOLS/bin/cyclonedx-py" requirements --output-reproducible --of JSON \
    -o "$doc/walstream-spark/sbom.cdx.json" packaging/spark.lock
  described walstream-spark /opt/walstream-spark
  compile_all walstream-spark
  echo /opt/walstream-spark >"$STAGE/walstream-spark.pth"
}

install_consumer() {
  consumer=$STAGE/usr/lib/walstream-consumer
  # what it depends on is among the wheels, each once: the lock decides here too
  "$TOOLS/bin/python" -m pip install -q --no-index --no-compile --target "$consumer" \
    --find-links "$WHEELS/consumer" --find-links "$WHEELS/requirements" \
    "walstream-consumer[lmdb]==$VERSION"
  rm -rf "$consumer/bin"
  mkdir -p "$doc/walstream-consumer"
  # an environment that has what lies there, and nothing else
  "$PYTHON" -m venv --without-pip --clear "$WORK/bill"
  echo "$consumer" >"$WORK/bill/lib/python$PYTHON_MINOR/site-packages/consumer.pth"
  "$TOOLS/bin/cyclonedx-py" environment --output-reproducible --of JSON \
    --pyproject "$WORK/consumer/pyproject.toml" \
    -o "$doc/walstream-consumer/sbom.cdx.json" "$WORK/bill/bin/python"
  described walstream-consumer "$consumer"
  "${compile[@]}" -s "$STAGE" -p / "$consumer" >"$WORK/compileall.log"
  echo /usr/lib/walstream-consumer >"$STAGE/walstream-consumer.pth"
}

described() { # what others made of it
  # else the bytes would depend on where this was built
  if grep -rl --include=RECORD direct_url.json "$2"; then exit 1; fi
  "$TOOLS/bin/python" packaging/bundle.py parts "$doc/$1/sbom.cdx.json" "$2"
  "$TOOLS/bin/python" packaging/bundle.py licences "$2" \
    "$doc/$1/licenses" "/usr/share/doc/$1/licenses"
}

# checked by nobody: files that belong to root do not change
compile=(/opt/walstream/bin/python -m compileall -q --invalidation-mode unchecked-hash)

compile_all() {
  "${compile[@]}" "/opt/$1" >"$WORK/compileall.log" || true # templates that are no Python
}

pinned() { # name==version of each wheel
  for wheel in "$WHEELS/$1"/*.whl; do
    basename "$wheel" | sed -E 's/^([^-]+)-([^-]+)-.*/\1==\2/'
  done
}

pages() { # what the command line tells of itself
  share=$STAGE/usr/share
  mkdir -p "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh" "$share/fish/vendor_completions.d"
  /opt/walstream/bin/python packaging/manual.py "$VERSION" |
    gzip -9n >"$share/man/man1/walstream.1.gz"
  complete() { _WALSTREAM_COMPLETE=source_$1 /opt/walstream/bin/walstream; }
  complete bash >"$share/bash-completion/completions/walstream"
  complete zsh >"$share/zsh/_walstream"
  complete fish >"$share/fish/vendor_completions.d/walstream.fish"
}

stage() {
  rm -rf "$STAGE"
  mkdir -p "$STAGE/opt"
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
  unshare --mount "${as_root[@]}" "$PWD/packaging/build.sh" inside
  configuration
  cp packaging/systemd/credentials.conf packaging/systemd/spark.conf \
    packaging/prometheus/*.yml packaging/grafana/*.json \
    "$STAGE/usr/share/doc/walstream/examples"
  chmod -R u=rwX,go=rX "$STAGE"
  find "$STAGE" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

configuration() { # as in a clone, but for its state
  mkdir -p "$STAGE/etc/walstream"
  sed 's|^state = "state"  *#|state = "/var/lib/walstream"           #|' walstream.toml \
    >"$STAGE/etc/walstream/walstream.toml"
  grep -q '^state = "/var/lib/walstream"' "$STAGE/etc/walstream/walstream.toml"
}

packages() {
  GLIBC=$("$PYTHON" packaging/bundle.py glibc "$STAGE/opt/walstream")
  GLIBC_OF_CONSUMER=$("$PYTHON" packaging/bundle.py glibc "$STAGE/usr/lib/walstream-consumer")
  export GLIBC GLIBC_OF_CONSUMER
  go=${GO:-$(command -v go || echo /usr/local/go/bin/go)}
  read -ra nfpm <<<"${NFPM:-$go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2}"
  mkdir -p "$OUT"
  for kind in "$@"; do
    for name in ${ONLY:-walstream walstream-spark walstream-consumer}; do
      # nFPM replaces variables in values alone, and not in all: so all are, here
      envsubst <"packaging/$name.yaml" >"$WORK/$name.yaml"
      "${nfpm[@]}" package -f "$WORK/$name.yaml" -p "$kind" -t "$OUT/"
    done
  done
}

case "${1:-}" in
inside) inside ;;
fetch)
  mkdir -p "$WHEELS"
  tools
  locked "$2"
  ;;
install)
  tools
  if [ "$2" = spark ]; then
    locked spark
  else
    locked requirements
    own
    configuration
  fi
  "install_$2"
  ;;
*)
  [ $# -gt 0 ] || set -- deb rpm
  mkdir -p "$WORK"
  tools
  own
  own_consumer
  locked requirements spark
  stage
  packages "$@"
  ;;
esac
