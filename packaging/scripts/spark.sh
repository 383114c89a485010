#!/bin/sh
# The drop-in now applies. After a first installation a running stream is restarted, since
# Spark's process would still have the narrower sandbox. After an upgrade walstream does it.
# deb: configure [the version before], remove; rpm: 1, 2, and 0 for a removal.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
    systemctl try-restart walstream.service 'walstream@*.service' || true
  fi
fi
