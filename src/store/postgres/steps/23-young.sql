-- `lone`: so many rows of baton.lone the queue has. Where there are none, nobody looks for keys in
-- it.
-- The next row has a higher number, `n`, behind the same place, or another place.
ALTER TABLE baton.young ADD COLUMN n bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.young ADD COLUMN lone bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.young DROP CONSTRAINT young_pkey;
ALTER TABLE baton.young ADD PRIMARY KEY (queue, seq, n);
UPDATE baton.young y SET lone = (SELECT count(*) FROM baton.lone l WHERE l.queue = y.queue);
