# In compose.yaml: writes one transaction a second, until it is stopped.
set -euo pipefail
PGPASSWORD=$(cat /run/secrets/walstream/shop)
export PGPASSWORD
exec psql -q -v ON_ERROR_STOP=1 -f - <<'SQL'
\o /dev/null
CALL shop.trade() \watch 1
SQL
