#!/bin/sh
# deb: remove, or upgrade; rpm: 0 is a removal, 1 an upgrade.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now walstream.service || true
  systemctl stop 'walstream@*.service' || true
  for wanted in /etc/systemd/system/*.wants/walstream@*.service; do
    [ ! -L "$wanted" ] || systemctl disable "$(basename "$wanted")" || true
  done
fi
echo "walstream: replication slots stay in their databases, which keep WAL for them."
echo "walstream: for each source that you no longer need: walstream destroy SOURCE," \
  "or in its database: SELECT pg_drop_replication_slot('SLOT');"
