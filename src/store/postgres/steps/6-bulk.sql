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
CREATE FUNCTION baton.unpack(first bigint, bytes bytea)
 RETURNS TABLE(seq bigint, payload bytea) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE at int := 0; size int;
BEGIN
 WHILE at < length(bytes) LOOP
  size := (get_byte(bytes, at + 1) << 24) | (get_byte(bytes, at + 2) << 16)
   | (get_byte(bytes, at + 3) << 8) | get_byte(bytes, at + 4);
  seq := first + get_byte(bytes, at);
  payload := substring(bytes FROM at + 6 FOR size);
  RETURN NEXT;
  at := at + 5 + size;
 END LOOP;
END $$;
-- The claims in chunks, as those in baton.claim are.
CREATE VIEW baton.item AS SELECT h.head, h.fence,
 substring(c.tokens FROM (16 * h.at - 15)::int FOR 16) AS token, c.owner, c.queue,
 NULL::text AS lane, c.granter, c.claimed_at, c.expires_at, false AS offered,
 ARRAY[h.head] AS seqs, c.first
 FROM baton.chunk c CROSS JOIN LATERAL unnest(c.heads, c.fences) WITH ORDINALITY
 h(head, fence, at);
-- What stands in bulk and is not done, as batches are.
CREATE VIEW baton.member AS SELECT x.seq, NULL::bigint AS born, b.queue, NULL::text AS lane,
 CASE WHEN x.fence IS NULL THEN 1 ELSE 4 END::smallint AS state, b.rank, b.flags, b.put_at,
 NULL::bigint AS due, NULL::text AS grp, NULL::bytea AS retry, 0 AS attempts,
 coalesce(x.fence, 0) AS fence, false AS cancel, false AS holds, false AS blocks,
 NULL::bytea AS error, NULL::bytea AS result, NULL::bigint AS ended_at, NULL::bigint AS until,
 x.payload, b.first, b.last, b.has, b.pool
 FROM baton.bulk b CROSS JOIN LATERAL (SELECT m.seq FROM baton.mark m WHERE m.queue = b.queue
 AND m.pool = b.pool AND m.rank = b.rank ORDER BY m.seq DESC LIMIT 1) k
 CROSS JOIN LATERAL (SELECT u.seq, u.payload, y.fence FROM baton.unpack(b.first, b.payload) u
 LEFT JOIN (SELECT z.head, z.fence FROM baton.item z WHERE z.first = b.first) y
 ON y.head = u.seq) x WHERE x.seq > k.seq OR x.fence IS NOT NULL;
-- Makes ordinary rows of these. The locks of their queues are held.
CREATE FUNCTION baton.melt(firsts bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 IF cardinality(firsts) = 0 THEN RETURN; END IF;
 INSERT INTO baton.batch(seq, put_at, fence, queue, shard, pool, attempts, state, rank, flags,
  head, line, cancel, holds, blocks, payload)
  SELECT m.seq, m.put_at, m.fence, m.queue, m.seq % q.shards,
  CASE WHEN q.mode = 4 THEN m.seq % q.shards + 1 ELSE 0 END, 0, m.state, m.rank, m.flags,
  m.state = 1, false, false, false, false, m.payload
  FROM baton.member m JOIN baton.queue q ON q.id = m.queue WHERE m.first = ANY(firsts);
 INSERT INTO baton.claim(head, fence, granter, claimed_at, expires_at, queue, offered, token,
  owner, lane, seqs) SELECT i.head, i.fence, i.granter, i.claimed_at, i.expires_at, i.queue,
  false, i.token, i.owner, NULL, i.seqs FROM baton.item i WHERE i.first = ANY(firsts);
 DELETE FROM baton.chunk WHERE first = ANY(firsts);
 DELETE FROM baton.bulk WHERE first = ANY(firsts);
END $$;
-- The row in which a batch stands.
CREATE FUNCTION baton.bulk_of(id bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
 SELECT b.first FROM baton.bulk b WHERE b.first >= id - id % 64 AND b.first <= id
 AND (b.has >> (id - b.first)::int) & 1 = 1 $$;
-- Makes what is ready in a queue whose mode was changed be where those look for it who claim now:
-- some of it each time.
CREATE FUNCTION baton.gather(of int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE runners bool := (SELECT mode = 4 FROM baton.queue WHERE id = of);
BEGIN
 PERFORM baton.melt(ARRAY(SELECT b.first FROM baton.bulk b WHERE b.queue = of
  AND ((runners AND b.pool = 0) OR (NOT runners AND b.pool > 0)) LIMIT 100));
 UPDATE baton.batch b SET pool = CASE WHEN runners THEN b.shard + 1 ELSE 0 END
  WHERE b.seq IN (SELECT y.seq FROM baton.batch y WHERE y.queue = of AND y.head
  AND ((runners AND y.pool = 0) OR (NOT runners AND y.pool > 0)) LIMIT 1000);
 UPDATE baton.queue SET mixed = false WHERE id = of
  AND NOT EXISTS (SELECT 1 FROM baton.batch y WHERE y.queue = of AND y.head
  AND ((runners AND y.pool = 0) OR (NOT runners AND y.pool > 0)))
  AND NOT EXISTS (SELECT 1 FROM baton.bulk y WHERE y.queue = of
  AND ((runners AND y.pool = 0) OR (NOT runners AND y.pool > 0)));
END $$;
-- The next three are as before, and know of these rows.
CREATE OR REPLACE FUNCTION baton.tend(of int, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE touched text[]; moved bigint; n2 bigint; n3 bigint;
BEGIN
 PERFORM baton.melt(ARRAY(SELECT DISTINCT x.first FROM (SELECT c.first FROM baton.chunk c
  WHERE c.queue = of AND c.expires_at <= now_ms AND c.expires_at < 9223372036854775807
  ORDER BY c.expires_at LIMIT 100) x));
 WITH d AS MATERIALIZED (SELECT seq, state FROM baton.batch WHERE queue = of
   AND state IN (2, 3) AND due <= now_ms ORDER BY due, seq LIMIT 1000),
  u AS (UPDATE baton.batch b SET state = 1, blocks = false, holds = false,
   head = b.lane IS NULL,
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
CREATE OR REPLACE FUNCTION baton.tidy(now_ms bigint, most bigint) RETURNS bigint
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
 total := total + n;
 WITH x AS MATERIALIZED (SELECT r.ctid AS at, r.base, r.until FROM baton.reply r,
  baton.state t WHERE r.base > t.swept_reply ORDER BY r.base LIMIT most - total),
  d AS (DELETE FROM baton.reply r USING x WHERE r.ctid = x.at AND x.until <= now_ms
   RETURNING 1)
 SELECT (SELECT count(*) FROM d), CASE WHEN count(*) < most - total THEN 0
  ELSE max(x.base) - 1 END INTO n, upto FROM x;
 UPDATE baton.state SET swept_reply = upto WHERE swept_reply <> upto;
 RETURN total + n;
END $$;
CREATE OR REPLACE FUNCTION baton.faults() RETURNS TABLE(sentence text, amount bigint)
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
   WHERE line <> (lane IS NOT NULL AND (state IN (1, 4) OR (blocks AND NOT holds)))
  UNION ALL SELECT 'batches without a lane can be claimed, or cannot, though it should be '
   'otherwise', count(*) FROM baton.batch b WHERE lane IS NULL AND head <> (state = 1 OR
   (state = 4 AND EXISTS (SELECT 1 FROM baton.claim c WHERE c.head = b.seq
   AND c.lane IS NULL AND c.offered)))
  UNION ALL SELECT 'heads are not those of their lanes', count(*) FROM baton.batch b
   WHERE b.lane IS NOT NULL AND NOT baton.is_key(b.lane) AND b.head AND (NOT b.line
   OR b.state = 3
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.line AND o.seq < b.seq)
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.holds)
   OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue AND c.lane = b.lane
    AND NOT c.offered))
  UNION ALL SELECT 'lanes cannot be claimed from, though they should', count(*) FROM (
   SELECT DISTINCT ON (queue, lane) * FROM baton.batch WHERE line
   ORDER BY queue, lane, seq) b WHERE NOT b.head AND b.state <> 3
   AND NOT baton.is_key(b.lane)
   AND NOT EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue
    AND o.lane = b.lane AND o.holds)
   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue
    AND c.lane = b.lane AND NOT c.offered)
  UNION ALL SELECT 'keys can be claimed, or cannot, though it should be otherwise', count(*)
   FROM (SELECT DISTINCT queue, lane FROM baton.batch WHERE baton.is_key(lane)) l
   CROSS JOIN LATERAL baton.key_state(l.queue, l.lane) k
   WHERE (SELECT array_agg(b.seq) FROM baton.batch b WHERE b.queue = l.queue
    AND b.lane = l.lane AND b.head) IS DISTINCT FROM CASE WHEN k.free THEN ARRAY[k.seq] END
  UNION ALL SELECT 'keys are kept by what does not wait', count(*) FROM baton.batch
   WHERE baton.is_key(lane) AND holds AND NOT (state = 3 AND blocks)
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
    FROM (SELECT state FROM baton.batch b WHERE b.queue = q.id UNION ALL
     SELECT state FROM baton.member m WHERE m.queue = q.id) b) n ON true
   LEFT JOIN LATERAL (SELECT * FROM baton.tally y WHERE y.queue = q.id ORDER BY y.n DESC
    LIMIT 1) t ON true
   WHERE (q.ready + coalesce(t.ready, 0), q.delayed + coalesce(t.delayed, 0),
    q.retrying + coalesce(t.retrying, 0), q.claimed + coalesce(t.claimed, 0),
    q.dead + coalesce(t.dead, 0), q.kept + coalesce(t.kept, 0)) <>
    (n.s1, n.s2, n.s3, n.s4, n.s5, n.s6)
  UNION ALL SELECT 'rows of several batches have none that is not done', count(*)
   FROM baton.bulk b WHERE NOT EXISTS (SELECT 1 FROM baton.member m WHERE m.first = b.first)
  UNION ALL SELECT 'rows of several batches have no mark', count(*) FROM baton.bulk b
   WHERE NOT EXISTS (SELECT 1 FROM baton.mark m WHERE m.queue = b.queue AND m.pool = b.pool
   AND m.rank = b.rank)
  UNION ALL SELECT 'claims are on rows of several batches that do not have them', count(*)
   FROM baton.item i WHERE baton.bulk_of(i.head) IS DISTINCT FROM i.first
  UNION ALL SELECT 'batches stand in two rows', count(*) FROM baton.member m
   WHERE EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = m.seq)
  UNION ALL SELECT 'batches have been claimed, and are before the mark', count(*)
   FROM baton.item i JOIN baton.bulk b ON b.first = i.first WHERE i.head > (SELECT max(m.seq)
   FROM baton.mark m WHERE m.queue = b.queue AND m.pool = b.pool AND m.rank = b.rank)
  ) x(sentence, amount) WHERE amount > 0
$$;
-- Users' transactions.
CREATE OR REPLACE FUNCTION baton.put(queue text, payload bytea, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE q baton.queue; number bigint; flags int := 0; wait interval; word text; due_ms
 bigint; source_key text := options->>'source'; key_hash bytea; content_hash bytea;
 key text := options->>'key';
BEGIN
 PERFORM baton.check_name('the queue', queue);
 IF lane IS NOT NULL THEN PERFORM baton.check_name('the lane', lane); END IF;
 IF key IS NOT NULL THEN PERFORM baton.check_name('the key', key); END IF;
 IF key IS NOT NULL AND lane IS NOT NULL THEN
  RAISE EXCEPTION 'both a lane and a key are given: only one of them is allowed'
   USING ERRCODE = '22023';
 END IF;
 FOR word IN SELECT jsonb_object_keys(options) LOOP
  IF word NOT IN ('priority', 'delay', 'class', 'delivery', 'slot', 'group',
   'source', 'key') THEN
   RAISE EXCEPTION '% is no option of baton.put', quote_literal(word)
    USING ERRCODE = '22023';
  END IF;
 END LOOP;
 IF coalesce((options->>'priority')::int, 0) NOT BETWEEN 0 AND 9 THEN
  RAISE EXCEPTION 'priority is %: 0 to 9 are allowed', options->>'priority'
   USING ERRCODE = '22023';
 END IF;
 flags := CASE coalesce(options->>'class', 'work') WHEN 'work' THEN 0 WHEN 'command'
 THEN 1
  END + CASE coalesce(options->>'delivery', 'earliest') WHEN 'earliest' THEN 0
  WHEN 'after_commit' THEN 2 END + CASE coalesce(options->>'slot', 'exclusive')
  WHEN 'exclusive' THEN 0 WHEN 'join' THEN 4 END;
 IF flags IS NULL THEN
  RAISE EXCEPTION 'class is work or command, delivery earliest or after_commit, slot '
   'exclusive or join' USING ERRCODE = '22023';
 END IF;
 wait := coalesce((options->>'delay')::interval, interval '0');
 IF wait < interval '0' OR wait > interval '1 year' THEN
  RAISE EXCEPTION 'delay is %: 0 to 1 year are allowed', wait USING ERRCODE = '22023';
 END IF;
 IF wait > interval '0' THEN
  due_ms := baton.now_ms() + (extract(epoch FROM wait) * 1000)::bigint;
 END IF;
 SELECT * INTO q FROM baton.queue x WHERE x.name = queue;
 q.ready := q.ready + coalesce((SELECT t.ready + t.delayed + t.retrying FROM baton.tally t
  WHERE t.queue = q.id ORDER BY t.n DESC LIMIT 1), 0);
 IF octet_length(payload) > coalesce(q.payload_max, 1048576) OR payload IS NULL THEN
  RAISE EXCEPTION 'the payload has % bytes: queue % allows %', octet_length(payload),
   quote_literal(queue), coalesce(q.payload_max, 1048576) USING ERRCODE = '22023';
 END IF;
 IF source_key IS NOT NULL THEN
  PERFORM baton.check_name('the source key', source_key);
  key_hash := sha256(baton.packed(queue) || baton.packed(coalesce(lane, ''))
   || baton.packed(source_key));
  content_hash := sha256(baton.packed(queue) || baton.packed(coalesce(lane, ''))
   || int8send(1 + (flags & 1)) || int8send(1 + (flags >> 1 & 1))
   || int8send(1 + (flags >> 2 & 1)) || baton.packed(coalesce(options->>'group', ''))
   || int8send(coalesce((options->>'priority')::int, 0))
   || int8send((extract(epoch FROM wait) * 1000000)::bigint * 1000)
   || int8send(0) || int8send(0) || int8send(0) || int8send(0) || int8send(0)
   || int8send(1) || int8send(octet_length(payload)) || payload
   || CASE WHEN key IS NULL THEN ''::bytea ELSE baton.packed(key) END);
  number := baton.known(key_hash, content_hash);
  IF number IS NOT NULL THEN RETURN number; END IF;
 END IF;
 IF q.waiting_max > 0 AND q.ready + q.delayed + q.retrying >= q.waiting_max THEN
  RAISE EXCEPTION
 'queue % has % jobs waiting, and its waiting_max is %: put again when '
   'some are done', quote_literal(queue), q.ready + q.delayed + q.retrying,
 q.waiting_max
   USING ERRCODE = '54000';
 END IF;
 number := nextval('baton.seq');
 INSERT INTO baton.staged(id, xid, what, queue, lane, rank, flags, due, grp, payload,
  key, content) VALUES (number, pg_current_xact_id(), 'put', queue, coalesce(chr(1) || key, lane),
  9 - coalesce((options->>'priority')::int, 0), flags, due_ms, options->>'group',
 payload, key_hash, content_hash);
 RETURN number;
END $$;
CREATE OR REPLACE FUNCTION baton.cancel(id bigint) RETURNS bool
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE b baton.batch := baton.find(id);
BEGIN
 INSERT INTO baton.staged(id, xid, what, queue) SELECT cancel.id, pg_current_xact_id(),
  'cancel', q.name FROM baton.member m JOIN baton.queue q ON q.id = m.queue
  WHERE m.first = baton.bulk_of(cancel.id) AND m.seq = cancel.id;
 IF FOUND THEN RETURN true; END IF;
 IF b.seq IS NULL OR b.state = 6 THEN
  DELETE FROM baton.staged s WHERE s.xid = pg_current_xact_id() AND s.what = 'put'
   AND s.id = cancel.id;
  RETURN FOUND;
 END IF;
 INSERT INTO baton.staged(id, xid, what, queue) SELECT cancel.id, pg_current_xact_id(),
  'cancel', q.name FROM baton.queue q WHERE q.id = b.queue;
 RETURN true;
END $$;
CREATE OR REPLACE FUNCTION baton.complete(claim text, token text) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE c record;
BEGIN
 IF claim !~ '^[0-9]{1,18}-[0-9]{1,18}$' OR token !~ '^[0-9a-f]{32}$' THEN
  RAISE EXCEPTION 'this is no claim, or no token' USING ERRCODE = '22023';
 END IF;
 SELECT * INTO c FROM (SELECT x.head, x.fence, x.token, x.queue FROM baton.claim x
   UNION ALL SELECT x.head, x.fence, x.token, x.queue FROM baton.item x
   WHERE x.first = baton.bulk_of(split_part(claim, '-', 1)::bigint)) x
  WHERE x.head = split_part(claim, '-', 1)::bigint
  AND x.fence = split_part(claim, '-', 2)::bigint AND x.token = decode(complete.token, 'hex');
 IF c.head IS NULL THEN
  RAISE EXCEPTION 'claim % is not held any more', claim USING ERRCODE = 'BT002';
 END IF;
 INSERT INTO baton.staged(id, xid, what, queue, head, fence, token)
  SELECT 0, pg_current_xact_id(), 'complete', q.name, c.head, c.fence, c.token
  FROM baton.queue q WHERE q.id = c.queue;
END $$;
CREATE OR REPLACE FUNCTION baton.staged_complete(s baton.staged) RETURNS void LANGUAGE plpgsql AS
 $$
DECLARE c baton.claim; q baton.queue; n bigint;
BEGIN
 PERFORM baton.melt(ARRAY(SELECT baton.bulk_of(s.head)));
 DELETE FROM baton.claim x WHERE x.head = s.head AND x.fence = s.fence
  AND x.token = s.token RETURNING * INTO c;
 IF c.head IS NULL THEN
  RAISE EXCEPTION 'claim %-% is not held any more', s.head, s.fence
   USING ERRCODE = 'BT002';
 END IF;
 SELECT * INTO q FROM baton.queue WHERE id = c.queue;
 n := cardinality(c.seqs);
 IF q.keep > 0 THEN
  UPDATE baton.batch SET state = 6, head = false, line = false, cancel = false,
   fence = s.fence, ended_at = baton.now_ms(), until = baton.now_ms() + q.keep / 1000000
   WHERE seq = ANY(c.seqs);
 ELSE
  DELETE FROM baton.batch WHERE seq = ANY(c.seqs);
 END IF;
 UPDATE baton.queue SET claimed = claimed - n, done = done + n,
  kept = kept + CASE WHEN q.keep > 0 THEN n ELSE 0 END WHERE id = c.queue;
 INSERT INTO baton.answer(head, fence, token, state, until) VALUES (s.head, s.fence,
 s.token,
  CASE WHEN q.keep > 0 THEN 6 ELSE 7 END, baton.now_ms() + q.dedupe / 1000000);
 IF c.lane IS NOT NULL THEN PERFORM baton.settle(c.queue, ARRAY[c.lane], n); END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.staged_cancel(s baton.staged) RETURNS void LANGUAGE plpgsql AS $$
DECLARE b baton.batch;
BEGIN
 PERFORM baton.melt(ARRAY(SELECT baton.bulk_of(s.id)));
 b := baton.find(s.id);
 IF b.state = 4 THEN
  UPDATE baton.batch SET cancel = true WHERE seq = b.seq;
 ELSIF b.state IN (1, 2, 3, 5) THEN
  DELETE FROM baton.batch WHERE seq = b.seq;
  UPDATE baton.queue SET ready = ready - (b.state = 1)::int,
   delayed = delayed - (b.state = 2)::int, retrying = retrying - (b.state = 3)::int,
   dead = dead - (b.state = 5)::int WHERE id = b.queue;
  IF b.lane IS NOT NULL THEN PERFORM baton.settle(b.queue, ARRAY[b.lane], 1); END IF;
 END IF;
END $$;
CREATE OR REPLACE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue,
 CASE WHEN baton.is_key(b.lane) THEN NULL ELSE b.lane END AS lane,
 (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] AS state,
 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,
 CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,
 convert_from(b.error, 'UTF8') AS error, b.payload,
 CASE WHEN baton.is_key(b.lane) THEN substr(b.lane, 2) END AS key
 FROM (SELECT seq, born, queue, lane, state, rank, attempts, put_at, due, error, payload
 FROM baton.batch UNION ALL SELECT seq, born, queue, lane, state, rank, attempts, put_at, due,
 error, payload FROM baton.member) b JOIN baton.queue q ON q.id = b.queue;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;
DO $$ BEGIN
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;
  GRANT EXECUTE ON FUNCTION baton.put(text, bytea, text, jsonb),
   baton.put(text, text, text, jsonb), baton.put(text, jsonb, text, jsonb),
   baton.put_many(text, bytea[], text, jsonb), baton.put_many(text, text[], text, jsonb)
   TO baton_put, baton_operator;
 END IF;
END $$;
