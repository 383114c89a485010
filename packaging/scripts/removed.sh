#!/bin/sh
# Removing keeps configuration and state; deb's purge deletes the state, too. The user stays,
# since another user with its number would own its remaining files. An administrator's own
# files in /etc/walstream stay, too.
set -e
if [ "$1" = purge ]; then
  # the folder may be a mount, which stays
  rm -rf /var/lib/walstream 2>/dev/null || true
  rmdir /etc/walstream 2>/dev/null ||
    echo "walstream: /etc/walstream has other files: they stay"
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
