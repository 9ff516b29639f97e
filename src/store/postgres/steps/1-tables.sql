CREATE SCHEMA baton;
-- What there is one of.
CREATE TABLE baton.state(
 one smallint PRIMARY KEY CHECK (one = 1), version int NOT NULL,
 name bytea NOT NULL, made bigint NOT NULL, runner bigint NOT NULL,
 place text NOT NULL, swept bigint NOT NULL DEFAULT 0,
 rung bigint NOT NULL DEFAULT 0);
CREATE SEQUENCE baton.seq CACHE 1;
CREATE TABLE baton.queue(
 id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
 name text COLLATE "C" NOT NULL UNIQUE,
 stripe int NOT NULL, mode int NOT NULL, shards int NOT NULL, paused bool NOT NULL,
 payload_max bigint NOT NULL, waiting_max bigint NOT NULL, attempts bigint NOT NULL,
 backoff int NOT NULL, base bigint NOT NULL, cap bigint NOT NULL,
 lane_attempts bigint NOT NULL, lane_backoff int NOT NULL, lane_base bigint NOT NULL,
 lane_cap bigint NOT NULL, on_retry int NOT NULL, on_dead int NOT NULL,
 dedupe bigint NOT NULL, keep bigint NOT NULL, ready bigint NOT NULL,
 delayed bigint NOT NULL, retrying bigint NOT NULL, claimed bigint NOT NULL,
 dead bigint NOT NULL, kept bigint NOT NULL, done bigint NOT NULL,
 failed bigint NOT NULL,
 mixed bool NOT NULL DEFAULT false, top bigint NOT NULL DEFAULT 0,
 floor bigint NOT NULL DEFAULT 0)
 WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0,
 autovacuum_vacuum_threshold = 1000);
-- What was put, and what has become of it. `head`: a claim can begin with it; `line`: it is in
-- the line of its lane.
CREATE TABLE baton.batch(
 seq bigint NOT NULL, put_at bigint NOT NULL, due bigint, fence bigint NOT NULL,
 born bigint, ended_at bigint, until bigint, queue int NOT NULL, shard int NOT NULL,
 pool int NOT NULL, attempts int NOT NULL, state smallint NOT NULL,
 rank smallint NOT NULL,
 flags smallint NOT NULL, head bool NOT NULL, line bool NOT NULL, cancel bool NOT NULL,
 holds bool NOT NULL, blocks bool NOT NULL, lane text COLLATE "C",
 grp text COLLATE "C", retry bytea, error bytea, result bytea, payload bytea NOT NULL,
 CONSTRAINT batch_seq PRIMARY KEY (seq))
 WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
 autovacuum_vacuum_threshold = 10000);
CREATE UNIQUE INDEX batch_born ON baton.batch(born) WHERE born IS NOT NULL;
CREATE INDEX batch_head ON baton.batch(queue, pool, rank, seq) WHERE head;
CREATE INDEX batch_line ON baton.batch(queue, lane, seq) WHERE line;
CREATE INDEX batch_holds ON baton.batch(queue, lane, seq) WHERE holds;
CREATE INDEX batch_due ON baton.batch(queue, due, seq) WHERE state IN (2, 3);
CREATE INDEX batch_until ON baton.batch(until) WHERE state = 6;
CREATE TABLE baton.claim(
 head bigint NOT NULL, fence bigint NOT NULL, granter bigint NOT NULL,
 claimed_at bigint NOT NULL, expires_at bigint NOT NULL, queue int NOT NULL,
 offered bool NOT NULL, token bytea NOT NULL, owner text NOT NULL,
 lane text COLLATE "C", seqs bigint[] NOT NULL, PRIMARY KEY (head, fence))
 WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
 autovacuum_vacuum_threshold = 10000);
CREATE INDEX claim_expires ON baton.claim(queue, expires_at) WHERE NOT offered;
CREATE INDEX claim_offered ON baton.claim(queue, expires_at) WHERE offered;
CREATE INDEX claim_lane ON baton.claim(queue, lane) WHERE lane IS NOT NULL;
CREATE INDEX claim_bound ON baton.claim(owner) WHERE expires_at = 9223372036854775807;
-- What is remembered for those who ask again.
CREATE TABLE baton.source(
 key bytea PRIMARY KEY, content bytea NOT NULL, id bigint NOT NULL,
 until bigint NOT NULL);
CREATE INDEX source_until ON baton.source(until);
CREATE TABLE baton.answer(
 head bigint NOT NULL, fence bigint NOT NULL, until bigint NOT NULL,
 state smallint NOT NULL, token bytea NOT NULL, PRIMARY KEY (head, fence));
CREATE TABLE baton.lease(
 subject text COLLATE "C" PRIMARY KEY, held bool NOT NULL, owner text NOT NULL,
 token bytea NOT NULL, nonce bytea NOT NULL, fence bigint NOT NULL,
 counter bigint NOT NULL, claimed_at bigint NOT NULL, expires_at bigint NOT NULL,
 runner bigint) WITH (fillfactor = 50);
CREATE INDEX lease_runner ON baton.lease(runner) WHERE runner IS NOT NULL;
CREATE TABLE baton.schedule(
 name text COLLATE "C" PRIMARY KEY, cron text NOT NULL, zone text NOT NULL,
 missed int NOT NULL, queue text NOT NULL, lane text NOT NULL, priority int NOT NULL,
 payload bytea NOT NULL, last bigint NOT NULL, next bigint NOT NULL);
-- Its beat changes all the time: no index has it, and nothing else is in its way.
CREATE TABLE baton.runner(
 number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, slot int NOT NULL,
 endpoint text NOT NULL, labels text NOT NULL, owner text NOT NULL,
 weight bigint NOT NULL,
 ttl bigint NOT NULL, since bigint NOT NULL, beat bigint NOT NULL,
 host text NOT NULL, queues text NOT NULL, life text NOT NULL,
 guardian bigint NOT NULL, wish bigint NOT NULL, state text NOT NULL)
 WITH (fillfactor = 20);
