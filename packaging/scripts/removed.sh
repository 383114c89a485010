#!/bin/sh
# Removing keeps configuration and state; deb's purge takes the state too. The user stays:
# its number must not come to own what it left elsewhere.
set -e
if [ "$1" = purge ]; then
  rm -rf /var/lib/walstream
  rmdir /etc/walstream 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
