CREATE TABLE outbox (
  id uuid PRIMARY KEY,
  aggregatetype varchar(255),
  aggregateid varchar(255),
  type varchar(255) NOT NULL DEFAULT 'none',
  payload jsonb,
  tenant text,
  small smallint,
  n int NOT NULL DEFAULT 7,
  big bigint,
  ok boolean,
  ratio float8,
  amount numeric(10, 2),
  day date,
  made timestamp,
  made3 timestamp(3),
  zoned timestamptz,
  raw bytea,
  part int
);
CREATE TABLE words (
  id bigint PRIMARY KEY,
  aggregatetype text NOT NULL,
  aggregateid int NOT NULL,
  payload text NOT NULL,
  version int NOT NULL DEFAULT 3
);
CREATE TABLE blobs (
  id text PRIMARY KEY,
  aggregatetype text NOT NULL,
  aggregateid uuid,
  payload bytea,
  note text
);
