#!/bin/sh
# Before files are unpacked, since their group must exist. deb: install, upgrade; rpm: 1, 2.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  echo 'u walstream - "walstream" /var/lib/walstream' |
    systemd-sysusers --replace=/usr/lib/sysusers.d/walstream.conf -
elif ! getent passwd walstream >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/walstream --no-create-home \
    --shell /usr/sbin/nologin walstream
fi
