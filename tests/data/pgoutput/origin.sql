CREATE TABLE t (id int PRIMARY KEY);
SELECT pg_replication_origin_create('golden');
SELECT pg_replication_origin_session_setup('golden');
-- recorded from here
BEGIN;
SELECT pg_replication_origin_xact_setup('0/16B3748', '2026-01-01 00:00:00+00');
INSERT INTO t VALUES (1);
COMMIT;
SELECT pg_replication_origin_session_reset();
SELECT pg_replication_origin_drop('golden');
