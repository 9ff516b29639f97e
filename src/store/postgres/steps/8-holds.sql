-- Before that time nothing is due in the queue, and no claim is over: see baton.since().
ALTER TABLE baton.tally ADD COLUMN tended bigint NOT NULL DEFAULT 0;
-- No head of the pool has a number up to that of its rank, counted from 1: see baton.raise(). The
-- next row has a higher number, as in baton.tally.
CREATE TABLE baton.low(
 queue int NOT NULL, pool int NOT NULL, n bigint NOT NULL, seqs bigint[] NOT NULL,
 PRIMARY KEY (queue, pool, n))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
