CREATE TABLE t (id int PRIMARY KEY, v text);
-- recorded from here
INSERT INTO t VALUES (1, repeat('z', 10240));
