#!/bin/sh
# Removing keeps configuration and state; deb's purge takes the state too. The user stays:
# its number must not come to own what it left elsewhere. So do files of an administrator's
# own in /etc/walstream.
set -e
if [ "$1" = purge ]; then
  # the folder may be a mount: that one stays
  rm -rf /var/lib/walstream 2>/dev/null || true
  rmdir /etc/walstream 2>/dev/null ||
    echo "walstream: /etc/walstream has other files: they stay"
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
