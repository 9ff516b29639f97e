-- Keys that take turns. The line of a key has got the number `turn` since its first batch was put;
-- `place` is where a head stands among others, if that is not its number.
ALTER TABLE baton.queue ADD COLUMN key_fair int NOT NULL DEFAULT 1;
ALTER TABLE baton.batch ADD COLUMN place bigint;
DROP INDEX baton.batch_head;
CREATE INDEX batch_head ON baton.batch(queue, pool, rank, (coalesce(place, seq)), seq) WHERE head;
CREATE TABLE baton.pace(queue int NOT NULL, lane text NOT NULL, turn bigint NOT NULL,
 PRIMARY KEY(queue, lane)) WITH (fillfactor = 70);
