#!/bin/sh
# Its drop-in counts from now on. Installed anew, a running stream is started again: Spark's
# process would still be held in the narrower sandbox. Of an upgrade walstream sees to that.
# deb: configure [the version before], remove; rpm: 1, 2, and 0 for a removal.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
    systemctl try-restart walstream.service 'walstream@*.service' || true
  fi
fi
