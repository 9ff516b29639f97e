-- Numbers and tokens of claims stay as they are: to compress them, for a few bytes, takes longer
-- than to write the row. It fits into a page.
ALTER TABLE baton.chunk ALTER COLUMN heads SET STORAGE PLAIN,
 ALTER COLUMN fences SET STORAGE PLAIN, ALTER COLUMN tokens SET STORAGE PLAIN;
ALTER TABLE baton.reply ALTER COLUMN heads SET STORAGE PLAIN,
 ALTER COLUMN fences SET STORAGE PLAIN, ALTER COLUMN tokens SET STORAGE PLAIN;
-- Up to which number nothing is in the line of a lane, nor claimed of it: see baton.pass(). Few
-- lanes have one. The next row has a higher number, as in baton.tally.
CREATE TABLE baton.past(
 queue int NOT NULL, lane text COLLATE "C" NOT NULL, n bigint NOT NULL, seq bigint NOT NULL,
 at bigint NOT NULL, PRIMARY KEY (queue, lane, n))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX past_at ON baton.past(at);
DROP INDEX baton.claim_lane;
CREATE INDEX claim_lane ON baton.claim(queue, lane, head) WHERE lane IS NOT NULL;
