#!/bin/bash
set -euo pipefail
mkdir -p /run/mysqld
chown mysql /run/mysqld /var/lib/mysql
if [ ! -d /var/lib/mysql/mysql ]; then
  mariadb-install-db --user=mysql --skip-test-db --auth-root-authentication-method=normal >/dev/null
  # a statement a line
  mariadbd --user=mysql --bootstrap <<SQL
FLUSH PRIVILEGES;
ALTER USER root@localhost IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
CREATE USER root@'%' IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
SQL
fi
exec "$@" --user=mysql --bind-address=0.0.0.0
