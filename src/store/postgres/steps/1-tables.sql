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
-- Numbers in a row that begins where the caller thinks it does.
CREATE FUNCTION baton.draw(first bigint, amount bigint) RETURNS void
 LANGUAGE plpgsql AS $$
BEGIN
 FOR i IN 0 .. amount - 1 LOOP
  IF nextval('baton.seq') <> first + i THEN
   RAISE EXCEPTION 'the numbers are not in a row' USING ERRCODE = 'BT001';
  END IF;
 END LOOP;
END $$;
-- Makes `head` right in these lanes, in which at most `entered` batches have entered.
CREATE FUNCTION baton.settle(of int, lanes text[], entered bigint) RETURNS void
 LANGUAGE sql AS $$
 WITH l AS MATERIALIZED (
  SELECT x.lane, q.mode, f.seq, f.state, f.head, f.seq IS NOT NULL AND f.state <> 3
   AND NOT EXISTS (SELECT 1 FROM baton.batch h WHERE h.queue = of AND h.lane = x.lane
    AND h.holds)
-- Said so that only the index over lanes can be used, whatever the statistics are.
   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = of AND c.lane = x.lane
    AND c.offered IS NOT TRUE) AS free
  FROM (SELECT DISTINCT unnest(lanes) AS lane) x
  JOIN baton.queue q ON q.id = of
  LEFT JOIN LATERAL (SELECT b.seq, b.state, b.head FROM baton.batch b
   WHERE b.queue = of AND b.lane = x.lane AND b.line ORDER BY b.seq LIMIT 1) f ON true),
 n AS (
  SELECT y.seq, l.free AND y.seq = l.seq AS head, l.mode FROM l
  CROSS JOIN LATERAL (SELECT b.seq, b.head FROM baton.batch b WHERE b.queue = of
   AND b.lane = l.lane AND b.line ORDER BY b.seq LIMIT entered + 1) y
  WHERE NOT (l.free AND l.head) AND y.head <> (l.free AND y.seq = l.seq))
 UPDATE baton.batch b SET head = n.head,
  pool = CASE WHEN n.mode = 4 THEN b.shard + 1 ELSE 0 END
 FROM n WHERE b.seq = n.seq
$$;
-- Makes what is due ready, and offers the work of claims that have expired: the first thousand
-- of each.
CREATE FUNCTION baton.tend(of int, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE touched text[]; moved bigint; n2 bigint; n3 bigint;
BEGIN
 WITH d AS MATERIALIZED (SELECT seq, state FROM baton.batch WHERE queue = of
   AND state IN (2, 3) AND due <= now_ms ORDER BY due, seq LIMIT 1000),
  u AS (UPDATE baton.batch b SET state = 1, blocks = false, head = b.lane IS NULL,
   line = b.lane IS NOT NULL, pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
   FROM d, baton.queue q WHERE b.seq = d.seq AND q.id = of RETURNING b.lane, d.state)
 SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL), count(*),
  count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3)
  INTO touched, moved, n2, n3 FROM u;
 IF moved > 0 THEN
  UPDATE baton.queue SET ready = ready + moved, delayed = delayed - n2,
   retrying = retrying - n3 WHERE id = of;
  PERFORM baton.settle(of, touched, moved);
 END IF;
 WITH x AS MATERIALIZED ((SELECT head, fence FROM baton.claim WHERE queue = of
   AND NOT offered AND expires_at <= now_ms ORDER BY expires_at LIMIT 1000)
   UNION ALL (SELECT head, fence FROM baton.claim WHERE queue = of AND offered
   AND expires_at > now_ms LIMIT 1000)),
  u AS (UPDATE baton.claim c SET offered = NOT c.offered FROM x
   WHERE c.head = x.head AND c.fence = x.fence RETURNING c.lane, c.seqs, c.offered),
  h AS (UPDATE baton.batch b SET head = u.offered,
   pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
   FROM u, baton.queue q WHERE u.lane IS NULL AND b.seq = u.seqs[1] AND q.id = of
   RETURNING 1)
 SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL), count(*)
  INTO touched, moved FROM u;
 IF touched IS NOT NULL THEN
  PERFORM baton.settle(of, touched, 0);
 END IF;
END $$;
-- Forgets what is no longer needed, at most so many.
CREATE FUNCTION baton.tidy(now_ms bigint, most bigint) RETURNS bigint
 LANGUAGE plpgsql AS $$
DECLARE n bigint; upto bigint; total bigint := 0;
BEGIN
 WITH d AS (DELETE FROM baton.batch WHERE seq IN (SELECT seq FROM baton.batch
   WHERE state = 6 AND until <= now_ms ORDER BY until LIMIT most FOR UPDATE SKIP LOCKED)
   RETURNING queue),
  s AS (SELECT queue, count(*) AS n FROM d GROUP BY queue),
  u AS (UPDATE baton.queue q SET kept = q.kept - s.n FROM s WHERE q.id = s.queue
   RETURNING s.n)
 SELECT coalesce(sum(u.n), 0) INTO total FROM u;
 DELETE FROM baton.source WHERE key IN (SELECT s.key FROM baton.source s
  WHERE s.until <= now_ms AND NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = s.id
  AND b.born IS NULL) AND NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.born = s.id)
  ORDER BY s.until LIMIT most - total FOR UPDATE SKIP LOCKED);
 GET DIAGNOSTICS n = ROW_COUNT;
 total := total + n;
-- These are in the order of their numbers, not of their times: each call looks at the next few,
-- and begins anew after the last.
 WITH x AS MATERIALIZED (SELECT a.head, a.fence, a.until FROM baton.answer a,
 baton.state t
   WHERE a.head > t.swept ORDER BY a.head LIMIT most - total),
  d AS (DELETE FROM baton.answer a USING x WHERE a.head = x.head AND a.fence = x.fence
   AND x.until <= now_ms RETURNING 1)
 SELECT (SELECT count(*) FROM d), CASE WHEN count(*) < most - total THEN 0
  ELSE max(x.head) END INTO n, upto FROM x;
 UPDATE baton.state SET swept = upto WHERE swept <> upto;
 RETURN total + n;
END $$;
-- What does not fit together: a sentence, and how many of them.
CREATE FUNCTION baton.faults() RETURNS TABLE(sentence text, amount bigint)
 LANGUAGE sql STABLE AS $$
 SELECT * FROM (
  SELECT 'batches have no queue', count(*) FROM baton.batch b
   WHERE NOT EXISTS (SELECT 1 FROM baton.queue q WHERE q.id = b.queue)
  UNION ALL SELECT 'batches have no state', count(*) FROM baton.batch
   WHERE state NOT BETWEEN 1 AND 6
  UNION ALL SELECT 'batches have a number that was not given out', count(*)
   FROM baton.batch WHERE seq > (SELECT last_value FROM baton.seq)
  UNION ALL SELECT 'batches are in a line, or are not, though it should be otherwise',
   count(*) FROM baton.batch
   WHERE line <> (lane IS NOT NULL AND (state IN (1, 4) OR blocks))
  UNION ALL SELECT 'batches without a lane can be claimed, or cannot, though it should be '
   'otherwise', count(*) FROM baton.batch b WHERE lane IS NULL AND head <> (state = 1 OR
   (state = 4 AND EXISTS (SELECT 1 FROM baton.claim c WHERE c.head = b.seq
   AND c.lane IS NULL AND c.offered)))
  UNION ALL SELECT 'heads are not those of their lanes', count(*) FROM baton.batch b
   WHERE b.lane IS NOT NULL AND b.head AND (NOT b.line OR b.state = 3
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.line AND o.seq < b.seq)
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.holds)
   OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue AND c.lane = b.lane
    AND NOT c.offered))
  UNION ALL SELECT 'lanes cannot be claimed from, though they should', count(*) FROM (
   SELECT DISTINCT ON (queue, lane) * FROM baton.batch WHERE line
   ORDER BY queue, lane, seq) b WHERE NOT b.head AND b.state <> 3
   AND NOT EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue
    AND o.lane = b.lane AND o.holds)
   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue
    AND c.lane = b.lane AND NOT c.offered)
  UNION ALL SELECT 'batches are claimed without a claim', count(*) FROM baton.batch b
   WHERE b.state = 4 AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue
   AND b.seq = ANY(c.seqs))
  UNION ALL SELECT 'claims have a batch that is not claimed', count(*)
   FROM baton.claim c CROSS JOIN LATERAL unnest(c.seqs) s(seq)
   WHERE NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = s.seq AND b.state = 4
   AND b.queue = c.queue AND b.lane IS NOT DISTINCT FROM c.lane)
  UNION ALL SELECT 'claims have no batch', count(*) FROM baton.claim c
   WHERE cardinality(c.seqs) = 0
  UNION ALL SELECT 'queues have another number of batches than they count', count(*)
   FROM baton.queue q LEFT JOIN LATERAL (SELECT
    count(*) FILTER (WHERE state = 1) AS s1, count(*) FILTER (WHERE state = 2) AS s2,
    count(*) FILTER (WHERE state = 3) AS s3, count(*) FILTER (WHERE state = 4) AS s4,
    count(*) FILTER (WHERE state = 5) AS s5, count(*) FILTER (WHERE state = 6) AS s6
    FROM baton.batch b WHERE b.queue = q.id) n ON true
   WHERE (q.ready, q.delayed, q.retrying, q.claimed, q.dead, q.kept) <>
    (n.s1, n.s2, n.s3, n.s4, n.s5, n.s6)
  ) x(sentence, amount) WHERE amount > 0
$$;
