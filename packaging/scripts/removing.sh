#!/bin/sh
# deb: remove, or upgrade; rpm: 0 is a removal, 1 an upgrade.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now walstream.service || true
  systemctl stop 'walstream@*.service' || true
fi
