CREATE SCHEMA s;
CREATE TYPE s.mood AS ENUM ('sad', 'glad');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (x int, y text);
CREATE TABLE t (id int PRIMARY KEY, m s.mood, p positive, c pair, a s.mood[]);
-- recorded from here
INSERT INTO t VALUES (1, 'glad', 7, ROW(1, 'a,b'), '{sad,glad}');
