#!/bin/bash
# The images walstream:VERSION and walstream:VERSION-spark: packaging/container/build.sh
#   TARGETS  "walstream spark" unless said
#   BASE     another base image than the Dockerfile's
#   FRESH    1: with the base's and Debian's newest packages, not those of the last build
#   DOCKER   the client, docker unless said
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
epoch=$(git log -1 --format=%ct)
revision=$(git rev-parse HEAD)
for target in ${TARGETS:-walstream spark}; do
  suffix=${target#walstream}
  "${DOCKER:-docker}" build ${FRESH:+--pull --no-cache} -f packaging/container/Dockerfile --target "$target" \
    -t "walstream:$version${suffix:+-$suffix}" ${BASE:+--build-arg "BASE=$BASE"} \
    --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
    --build-arg "SOURCE_DATE_EPOCH=$epoch" .
done
