CREATE TABLE t (a int, b text, n int, PRIMARY KEY (b, a));
-- recorded from here
INSERT INTO t VALUES (1, 'x', 10), (2, 'x', 20);
UPDATE t SET b = 'y', n = n + 1;
