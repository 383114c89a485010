-- In compose.yaml: the shop, when its database is made. Passwords stand in files alone.
-- walstream belongs to the owner of the tables, and so may publish and read them.
\set shop `cat /run/secrets/walstream/shop`
\set walstream `cat /run/secrets/walstream/walstream`
CREATE ROLE shop LOGIN PASSWORD :'shop';
CREATE ROLE walstream LOGIN REPLICATION PASSWORD :'walstream' IN ROLE shop;
GRANT CREATE ON DATABASE :"DBNAME" TO walstream; -- for the publications
GRANT EXECUTE ON FUNCTION pg_ls_replslotdir(text) TO walstream; -- for alarm_spill

CREATE SCHEMA shop AUTHORIZATION shop;
SET ROLE shop;
CREATE TABLE shop.customers (id int PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE shop.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id int NOT NULL REFERENCES shop.customers,
    amount numeric(8,2) NOT NULL,
    status text NOT NULL DEFAULT 'new');
INSERT INTO shop.customers VALUES
    (1, 'Ann', 'Bergen'), (2, 'Bob', 'Ghent'), (3, 'Eve', 'Porto'), (4, 'Joe', NULL);

-- one transaction: an order comes, older ones move on, those long done are deleted
CREATE PROCEDURE shop.trade() LANGUAGE sql AS $$
    INSERT INTO shop.orders (customer_id, amount)
        VALUES (1 + floor(random() * 4), round((random() * 100)::numeric, 2));
    UPDATE shop.orders SET status = CASE status WHEN 'new' THEN 'paid' ELSE 'sent' END
        WHERE status <> 'sent' AND id % 3 = (SELECT max(id) FROM shop.orders) % 3
        AND id < (SELECT max(id) FROM shop.orders);
    DELETE FROM shop.orders
        WHERE status = 'sent' AND id < (SELECT max(id) FROM shop.orders) - 20;
$$;
