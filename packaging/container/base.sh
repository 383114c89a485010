#!/bin/bash
# A stand-in for the base image, where no registry is reachable: packaging/container/base.sh
#
# Debian's own packages, by debootstrap, less what its slim images leave out; tagged as the
# Dockerfile's BASE, unless the engine has that. Certificate authorities of this machine
# are added to it: without them pip may reach no index from inside.
#   SUITE   of Debian, trixie unless said
#   TAG     debian:SUITE-slim unless said
#   MIRROR  http://deb.debian.org/debian unless said
#   DOCKER  the client, docker unless said
set -euo pipefail
SUITE=${SUITE:-trixie}
TAG=${TAG:-debian:$SUITE-slim}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
DOCKER=${DOCKER:-docker}
OWN=/usr/local/share/ca-certificates
if "$DOCKER" image inspect "$TAG" >/dev/null 2>&1; then
  echo "$TAG is there"
  exit
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
debootstrap --variant=minbase "$SUITE" "$root" "$MIRROR" >/dev/null
for name in "$SUITE-updates:$MIRROR" "$SUITE-security:${MIRROR%/*}/debian-security"; do
  echo "deb ${name#*:} ${name%%:*} main" >>"$root/etc/apt/sources.list"
done
mkdir -p "$root$OWN"
[ ! -d "$OWN" ] || cp -rL "$OWN/." "$root$OWN"
# as in the slim images: packages bring no pages, save their licences, and none is kept
cat >"$root/etc/dpkg/dpkg.cfg.d/docker" <<'END'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
END
cat >"$root/etc/apt/apt.conf.d/docker-clean" <<'END'
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };
END
find "$root/usr/share/doc" ! -name copyright ! -type d -delete
rm -rf "$root"/usr/share/{info,locale,man}/* "$root"/var/{lib/apt/lists,cache/apt,log}/*
tar -C "$root" --numeric-owner -c . | "$DOCKER" import -c 'CMD ["bash"]' \
  -m "a stand-in made by debootstrap: packaging/container/base.sh" - "$TAG"
