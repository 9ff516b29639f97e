-- Jobs with keys stand together, too, as long as nobody else has theirs. `keys`: the names of their
-- lines, in the order of the jobs, with a null for each that has no key; none: no job has one.
ALTER TABLE baton.bulk ADD COLUMN keys text[];
ALTER TABLE baton.bulk ALTER COLUMN keys SET STORAGE PLAIN;
CREATE INDEX bulk_keys ON baton.bulk(queue, first) WHERE keys IS NOT NULL;
-- Behind that number such rows of a queue are young: who looks for a key looks through them. The
-- next row has a higher number, as in baton.mark.
CREATE TABLE baton.young(
 queue int NOT NULL, seq bigint NOT NULL, PRIMARY KEY (queue, seq))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- The keys of those that are not, as long as their row is there.
CREATE TABLE baton.lone(
 queue int NOT NULL, line text COLLATE "C" NOT NULL, first bigint NOT NULL,
 PRIMARY KEY (queue, line, first))
 WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
