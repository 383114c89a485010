CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL, n int);
CREATE UNIQUE INDEX t_code ON t (code);
ALTER TABLE t REPLICA IDENTITY USING INDEX t_code;
-- recorded from here
INSERT INTO t VALUES (1, 'a', 10);
UPDATE t SET id = 2;
UPDATE t SET code = 'b';
DELETE FROM t;
