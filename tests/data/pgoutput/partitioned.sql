CREATE TABLE root (id int PRIMARY KEY, n int, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (10);
CREATE TABLE high PARTITION OF root FOR VALUES FROM (10) TO (20);
-- recorded from here
INSERT INTO root VALUES (1, 10, 'a'), (11, 110, 'b');
UPDATE root SET id = 12 WHERE id = 1;
DELETE FROM root WHERE id = 11;
TRUNCATE root;
