-- How many wait for a key, which the library never writes: triggers count them where all counts of
-- a queue are. See baton.waiting_of().
ALTER TABLE baton.queue ADD COLUMN waiting bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.tally ADD COLUMN waiting bigint NOT NULL DEFAULT 0;
UPDATE baton.queue q SET waiting = w.n FROM (SELECT x.queue, sum(x.n) AS n FROM (
 SELECT b.queue, CASE WHEN left(b.lane, 1) = chr(1) THEN (b.line AND b.state = 1)::int - b.head::int
  WHEN b.asks THEN 1 - b.head::int ELSE 0 END AS n FROM baton.batch b
 UNION ALL SELECT c.queue, cardinality(c.seqs) FROM baton.claim c WHERE c.offered
  AND left(c.lane, 1) = chr(1)) x GROUP BY x.queue) w WHERE w.queue = q.id AND w.n <> 0;
-- In queues with a key_waiting_max: what is ready and has keys beside its lane, or several, by the
-- line of each of its keys. See baton.on_wish().
CREATE TABLE baton.wish(
 queue int NOT NULL, line text COLLATE "C" NOT NULL, seq bigint NOT NULL,
 PRIMARY KEY (queue, line, seq))
 WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
