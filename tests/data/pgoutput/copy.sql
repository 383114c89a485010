CREATE TABLE t (id int PRIMARY KEY, v text);
-- recorded from here
COPY t FROM PROGRAM 'printf "1\ta\n2\t\\\\N\n3\t\n"';
