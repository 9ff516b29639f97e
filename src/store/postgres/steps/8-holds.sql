-- Before that time nothing is due in the queue, and no claim is over: see baton.since().
ALTER TABLE baton.tally ADD COLUMN tended bigint NOT NULL DEFAULT 0;
-- Keys that take turns. The line of a key has got the number `turn` since its first batch was put;
-- `place` is where a head stands among others because of that: see line_place().
ALTER TABLE baton.queue ADD COLUMN key_fair int NOT NULL DEFAULT 1;
ALTER TABLE baton.batch ADD COLUMN place bigint;
DROP INDEX baton.batch_head;
CREATE INDEX batch_head ON baton.batch(queue, pool, rank, (coalesce(place, seq * 2)), seq)
 WHERE head;
CREATE TABLE baton.pace(queue int NOT NULL, lane text NOT NULL, turn bigint NOT NULL,
 PRIMARY KEY(queue, lane)) WITH (fillfactor = 70);
-- No head of the pool has a place up to that of its rank, counted from 1: see baton.raise(). The
-- next row has a higher number, as in baton.tally.
CREATE TABLE baton.low(
 queue int NOT NULL, pool int NOT NULL, n bigint NOT NULL, places bigint[] NOT NULL,
 PRIMARY KEY (queue, pool, n))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
