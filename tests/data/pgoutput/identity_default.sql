CREATE TABLE t (id int PRIMARY KEY, n int, v varchar(10));
-- recorded from here
INSERT INTO t VALUES (1, 10, 'a');
UPDATE t SET n = 11;
UPDATE t SET id = 2;
DELETE FROM t;
