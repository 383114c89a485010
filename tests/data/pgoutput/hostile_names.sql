CREATE SCHEMA "S.1";
CREATE TABLE "S.1"."té ""q""" ("a b" int PRIMARY KEY, "C'" text);
-- recorded from here
INSERT INTO "S.1"."té ""q""" VALUES (1, 'é"\');
