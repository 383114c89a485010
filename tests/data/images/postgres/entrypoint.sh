#!/bin/bash
# As the public image: as root it makes the folder, then goes on as postgres.
set -Eeuo pipefail
[ "$1" = postgres ] || exec "$@"
if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
  POSTGRES_PASSWORD=$(<"$POSTGRES_PASSWORD_FILE")
  export POSTGRES_PASSWORD
  unset POSTGRES_PASSWORD_FILE
fi
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"
  chmod 00700 "$PGDATA"
  chown -R postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
    echo "Error: Database is uninitialized and superuser password is not specified." >&2
    exit 1
  fi
  initdb -D "$PGDATA" --username="$user" --pwfile=<(echo "${POSTGRES_PASSWORD:-}") \
    --auth-local=trust --auth-host=trust -E UTF8
  echo "host all all all $method" >>"$PGDATA/pg_hba.conf"
  sed -ri "s!^#?(listen_addresses)\s*=\s*\S+.*!listen_addresses = '*'!" \
    "$PGDATA/postgresql.conf"
  options="-c listen_addresses='' -p 5432"
  pg_ctl -D "$PGDATA" -o "$options" -w start
  [ "$database" = postgres ] ||
    psql -U "$user" -d postgres -qc "CREATE DATABASE \"$database\""
  for script in /docker-entrypoint-initdb.d/*; do
    case "$script" in
    *.sh) . "$script" ;;
    *.sql) psql -v ON_ERROR_STOP=1 -U "$user" -d "$database" -f "$script" ;;
    esac
  done
  pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
