-- Jobs without a lane that are put together stand in one row, as long as nothing but the usual
-- happens to them: put, claimed, completed. Whoever does anything else makes ordinary rows of them
-- first: baton.melt().
--
-- `has`: bit i is the batch of number first + i. `payload`: for each of them i, as a byte, the
-- length, as four bytes, and the payload. All numbers of a row have the same rest of the division
-- by 64 cut off, so that it is found by them.
CREATE TABLE baton.bulk(
 first bigint PRIMARY KEY, last bigint NOT NULL, has bigint NOT NULL, put_at bigint NOT NULL,
 queue int NOT NULL, pool int NOT NULL, rank smallint NOT NULL, n smallint NOT NULL,
 flags smallint NOT NULL, payload bytea NOT NULL)
 WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
ALTER TABLE baton.bulk ALTER COLUMN payload SET STORAGE PLAIN;
CREATE INDEX bulk_ready ON baton.bulk(queue, pool, rank, last);
-- Up to where these have been claimed. The next row has a higher number, so that the last one is
-- found without those that are dead.
CREATE TABLE baton.mark(
 queue int NOT NULL, pool int NOT NULL, rank smallint NOT NULL, seq bigint NOT NULL,
 PRIMARY KEY (queue, pool, rank, seq))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- Claims of one call on one row, each of one batch. What is neither here nor behind the mark is
-- done.
CREATE TABLE baton.chunk(
 id bigint GENERATED ALWAYS AS IDENTITY, first bigint NOT NULL, granter bigint NOT NULL,
 claimed_at bigint NOT NULL, expires_at bigint NOT NULL, queue int NOT NULL,
 owner text NOT NULL, heads bigint[] NOT NULL, fences bigint[] NOT NULL, tokens bytea NOT NULL)
 WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,
 autovacuum_vacuum_threshold = 2000);
CREATE INDEX chunk_first ON baton.chunk(first);
CREATE INDEX chunk_expires ON baton.chunk(queue, expires_at)
 WHERE expires_at < 9223372036854775807;
CREATE INDEX chunk_bound ON baton.chunk(owner) WHERE expires_at = 9223372036854775807;
-- What is remembered of claims that were completed: those of one call, by their numbers without
-- the rest of the division by 64.
CREATE TABLE baton.reply(
 base bigint NOT NULL, until bigint NOT NULL, state smallint NOT NULL, heads bigint[] NOT NULL,
 fences bigint[] NOT NULL, tokens bytea NOT NULL);
CREATE INDEX reply_base ON baton.reply(base);
ALTER TABLE baton.state ADD COLUMN swept_reply bigint NOT NULL DEFAULT 0;
-- Rows that are not changed in place, because whoever reads them would have to walk over all that
-- they were before, as long as somebody holds an old snapshot: the next one has a higher number.
-- What the library counts of a queue, to be added to what baton.queue has.
CREATE TABLE baton.tally(
 queue int NOT NULL, n bigint NOT NULL, ready bigint NOT NULL, delayed bigint NOT NULL,
 retrying bigint NOT NULL, claimed bigint NOT NULL, dead bigint NOT NULL, kept bigint NOT NULL,
 done bigint NOT NULL, failed bigint NOT NULL, top bigint NOT NULL, floor bigint NOT NULL,
 PRIMARY KEY (queue, n))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- How many claims were counted under a fence.
CREATE TABLE baton.counter(
 subject text COLLATE "C" NOT NULL, fence bigint NOT NULL, n bigint NOT NULL,
 PRIMARY KEY (subject, fence, n))
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
