#!/bin/sh
# deb: configure [the version before]; rpm: 1 is an installation, 2 an upgrade.
set -e
case "$1" in configure | 1 | 2) ;; *) exit 0 ;; esac
if [ ! -d /var/lib/walstream ]; then
  install -d -m 0700 -o walstream -g walstream /var/lib/walstream
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # a running stream drains, and continues as the new version; rpm does that at the end
  if [ "$1" = configure ] && [ -n "$2" ]; then
    systemctl try-restart walstream.service 'walstream@*.service' || true
  fi
fi
