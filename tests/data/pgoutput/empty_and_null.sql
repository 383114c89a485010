CREATE TABLE t (id int PRIMARY KEY, e text, n text, b bytea);
-- recorded from here
INSERT INTO t VALUES (1, '', NULL, '');
INSERT INTO t (id) VALUES (2);
