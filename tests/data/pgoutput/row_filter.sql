-- publication: FOR TABLE t WHERE (id > 5)
CREATE TABLE t (id int PRIMARY KEY, v text);
ALTER TABLE t ALTER COLUMN v SET STORAGE EXTERNAL;
INSERT INTO t VALUES (1, repeat('x', 3000));
-- recorded from here
UPDATE t SET id = 6;
UPDATE t SET id = 2;
