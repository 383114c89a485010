CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id serial PRIMARY KEY, parent int REFERENCES parent);
-- recorded from here
TRUNCATE child;
TRUNCATE parent RESTART IDENTITY CASCADE;
