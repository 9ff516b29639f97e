-- Concurrency keys. What has a key and no lane is in a line whose name is a character 1, which no
-- lane's name has, and the key. A batch that keeps its key until its next attempt holds it.
ALTER TABLE baton.queue ADD COLUMN key_limit bigint NOT NULL DEFAULT 1,
 ADD COLUMN hold_on_retry int NOT NULL DEFAULT 1;
CREATE FUNCTION baton.is_key(line text) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
 SELECT left(line, 1) = chr(1) $$;
-- Whether a claim of the key can begin, and with which batch: the first that is ready, or whose
-- claim has expired. `busy`: how many of its line are claimed.
CREATE FUNCTION baton.key_state(of int, key text, OUT seq bigint, OUT head bool, OUT free bool,
 OUT busy bigint) LANGUAGE sql STABLE AS $$
 SELECT f.seq, coalesce(f.head, false), f.seq IS NOT NULL AND c.live + k.kept < q.key_limit,
  c.batches FROM baton.queue q
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE NOT c.offered) AS live,
  coalesce(sum(cardinality(c.seqs)), 0)::bigint AS batches FROM baton.claim c
  WHERE c.queue = of AND c.lane = key) c
 CROSS JOIN LATERAL (SELECT count(*) AS kept FROM baton.batch b WHERE b.queue = of
  AND b.lane = key AND b.holds) k
 LEFT JOIN LATERAL (SELECT b.seq, b.head FROM baton.batch b WHERE b.queue = of
  AND b.lane = key AND b.line AND (b.state = 1 OR EXISTS (SELECT 1 FROM baton.claim o
   WHERE o.queue = of AND o.lane = key AND o.offered AND b.seq = ANY(o.seqs)))
  ORDER BY b.seq LIMIT 1) f ON true WHERE q.id = of $$;
CREATE FUNCTION baton.settle_keys(of int, keys text[], entered bigint) RETURNS void
 LANGUAGE sql AS $$
 WITH l AS MATERIALIZED (
  SELECT x.key, q.mode, k.* FROM (SELECT DISTINCT unnest(keys) AS key) x
  JOIN baton.queue q ON q.id = of CROSS JOIN LATERAL baton.key_state(of, x.key) k),
 n AS (
  SELECT y.seq, l.free AND y.seq = l.seq AS head, l.mode FROM l
  CROSS JOIN LATERAL (SELECT b.seq, b.head FROM baton.batch b WHERE b.queue = of
   AND b.lane = l.key AND b.line ORDER BY b.seq LIMIT entered + l.busy + 2) y
  WHERE NOT (l.free AND l.head) AND y.head <> (l.free AND y.seq = l.seq))
 UPDATE baton.batch b SET head = n.head,
  pool = CASE WHEN n.mode = 4 THEN b.shard + 1 ELSE 0 END
 FROM n WHERE b.seq = n.seq
$$;
CREATE OR REPLACE FUNCTION baton.settle(of int, lanes text[], entered bigint) RETURNS void
 LANGUAGE sql AS $$
 SELECT baton.settle_keys(of, array_agg(x), entered) FROM unnest(lanes) x
  WHERE baton.is_key(x) HAVING count(*) > 0;
 WITH l AS MATERIALIZED (
  SELECT x.lane, q.mode, f.seq, f.state, f.head, f.seq IS NOT NULL AND f.state <> 3
   AND NOT EXISTS (SELECT 1 FROM baton.batch h WHERE h.queue = of AND h.lane = x.lane
    AND h.holds)
-- Said so that only the index over lanes can be used, whatever the statistics are.
   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = of AND c.lane = x.lane
    AND c.offered IS NOT TRUE) AS free
  FROM (SELECT DISTINCT y AS lane FROM unnest(lanes) y WHERE NOT baton.is_key(y)) x
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
-- All keys of a queue, after its limit has changed: one look for each of them.
CREATE FUNCTION baton.settle_limit(of int) RETURNS void LANGUAGE sql AS $$
 WITH RECURSIVE k AS (
  (SELECT b.lane FROM baton.batch b WHERE b.queue = of AND b.line AND b.lane >= chr(1)
   AND b.lane < chr(2) ORDER BY b.lane LIMIT 1)
  UNION ALL SELECT (SELECT b.lane FROM baton.batch b WHERE b.queue = of AND b.line
   AND b.lane > k.lane AND b.lane < chr(2) ORDER BY b.lane LIMIT 1)
  FROM k WHERE k.lane IS NOT NULL)
 SELECT baton.settle_keys(of, array_agg(k.lane), 0) FROM k WHERE k.lane IS NOT NULL
 HAVING count(*) > 0
$$;
CREATE OR REPLACE FUNCTION baton.tend(of int, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE touched text[]; moved bigint; n2 bigint; n3 bigint;
BEGIN
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
-- What does not fit together: a sentence, and how many of them.
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
    FROM baton.batch b WHERE b.queue = q.id) n ON true
   WHERE (q.ready, q.delayed, q.retrying, q.claimed, q.dead, q.kept) <>
    (n.s1, n.s2, n.s3, n.s4, n.s5, n.s6)
  ) x(sentence, amount) WHERE amount > 0
$$;
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
CREATE OR REPLACE FUNCTION baton.staged_put(mine xid8) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE lanes record; now_at bigint := baton.now_ms();
BEGIN
 INSERT INTO baton.queue(name, stripe, mode, shards, paused, payload_max, waiting_max,
  attempts, backoff, base, cap, lane_attempts, lane_backoff, lane_base, lane_cap,
 on_retry,
  on_dead, dedupe, keep, ready, delayed, retrying, claimed, dead, kept, done, failed)
  SELECT DISTINCT s.queue, baton.stripe(s.queue), 1, 16, false, 1048576, 0, 20, 1,
 1000000000,
  3600000000000, 5, 1, 1000000000, 30000000000, 1, 1, 86400000000000, 0, 0, 0, 0, 0,
 0, 0, 0,
  0 FROM baton.staged s WHERE s.xid = mine AND s.what = 'put'
  AND NOT EXISTS (SELECT 1 FROM baton.queue q WHERE q.name = s.queue);
-- Who stages a key has looked before; but those who do not stage take no lock of it.
 IF EXISTS (SELECT 1 FROM baton.staged s JOIN baton.source o ON o.key = s.key
   WHERE s.xid = mine AND s.what = 'put' AND (o.until > now_at
   OR (baton.find(o.id)).seq IS NOT NULL)) THEN
  RAISE EXCEPTION 'somebody else has put the same source key meanwhile: do it again'
   USING ERRCODE = '40001';
 END IF;
 INSERT INTO baton.source(key, content, id, until) SELECT s.key, s.content, s.id,
  now_at + q.dedupe / 1000000 FROM baton.staged s JOIN baton.queue q ON q.name = s.queue
  WHERE s.xid = mine AND s.what = 'put' AND s.key IS NOT NULL ON CONFLICT (key)
  DO UPDATE SET content = excluded.content, id = excluded.id, until = excluded.until;
 INSERT INTO baton.batch(seq, born, queue, lane, shard, pool, head, line, state, rank,
 flags,
  put_at, due, grp, attempts, fence, cancel, holds, blocks, payload)
  SELECT x.seq, x.id, x.qid, x.lane, x.shard, CASE WHEN x.mode = 4 THEN x.shard + 1
  ELSE 0 END, x.lane IS NULL AND x.ready, x.lane IS NOT NULL AND x.ready,
  CASE WHEN x.ready THEN 1 ELSE 2 END, x.rank, x.flags, now_at,
  CASE WHEN x.ready THEN NULL ELSE x.due END, x.grp, 0, 0, false, false, false,
 x.payload
  FROM (SELECT nextval('baton.seq') AS seq, y.* FROM (SELECT s.*, q.id AS qid, q.mode,
   baton.shard(s.queue, CASE WHEN baton.is_key(s.lane) THEN substr(s.lane, 2)
    ELSE s.lane END, s.id, q.shards) AS shard,
   s.due IS NULL OR s.due <= now_at AS ready FROM baton.staged s
   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'
   ORDER BY s.id) y) x;
 FOR lanes IN SELECT q.id, count(*) AS n, count(*) FILTER (WHERE s.due > now_at) AS
 late,
   array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL) AS names FROM baton.staged s
   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'
   GROUP BY q.id ORDER BY q.id LOOP
  UPDATE baton.queue SET ready = ready + lanes.n - lanes.late,
   delayed = delayed + lanes.late WHERE id = lanes.id;
  IF lanes.names IS NOT NULL THEN
   PERFORM baton.settle(lanes.id, lanes.names, lanes.n);
  END IF;
 END LOOP;
END $$;
CREATE OR REPLACE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue,
 CASE WHEN baton.is_key(b.lane) THEN NULL ELSE b.lane END AS lane,
 (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] AS state,
 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,
 CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,
 convert_from(b.error, 'UTF8') AS error, b.payload,
 CASE WHEN baton.is_key(b.lane) THEN substr(b.lane, 2) END AS key
 FROM baton.batch b JOIN baton.queue q ON q.id = b.queue;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;
DO $$ BEGIN
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;
 END IF;
END $$;
