# In compose.yaml: a password for each role and a token for the page, made once.
# The user of PostgreSQL's image is 999, walstream's 10001: nobody else reads them.
set -euo pipefail
cd /run/secrets/walstream
umask 077
for name in postgres shop walstream token; do
  [ -s "$name" ] || head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$name"
  chown 10001:999 "$name"
  chmod 0440 "$name"
done
