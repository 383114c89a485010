CREATE TABLE t (id int PRIMARY KEY);
-- recorded from here
BEGIN;
INSERT INTO t VALUES (1);
SELECT pg_logical_emit_message(true, 'with', '\x00ff'::bytea);
INSERT INTO t VALUES (2);
COMMIT;
SELECT pg_logical_emit_message(false, 'alone', '');
INSERT INTO t VALUES (3);
