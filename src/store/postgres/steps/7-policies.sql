-- What becomes of work whose key others have. What was skipped is stored as done, with the id of
-- the batch that it gave way to.
ALTER TABLE baton.queue ADD COLUMN on_conflict int NOT NULL DEFAULT 1,
 ADD COLUMN key_waiting_max bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.batch ADD COLUMN rival bigint;
CREATE OR REPLACE VIEW baton.member AS
 SELECT x.seq, NULL::bigint AS born, b.queue, NULL::text AS lane,
 CASE WHEN x.fence IS NULL THEN 1 ELSE 4 END::smallint AS state, b.rank, b.flags, b.put_at,
 NULL::bigint AS due, NULL::text AS grp, NULL::bytea AS retry, 0 AS attempts,
 coalesce(x.fence, 0) AS fence, false AS cancel, false AS holds, false AS blocks,
 NULL::bytea AS error, NULL::bytea AS result, NULL::bigint AS ended_at, NULL::bigint AS until,
 x.payload, b.first, b.last, b.has, b.pool, NULL::bigint AS rival
 FROM baton.bulk b CROSS JOIN LATERAL (SELECT m.seq FROM baton.mark m WHERE m.queue = b.queue
 AND m.pool = b.pool AND m.rank = b.rank ORDER BY m.seq DESC LIMIT 1) k
 CROSS JOIN LATERAL (SELECT u.seq, u.payload, y.fence FROM baton.unpack(b.first, b.payload) u
 LEFT JOIN (SELECT z.head, z.fence FROM baton.item z WHERE z.first = b.first) y
 ON y.head = u.seq) x WHERE x.seq > k.seq OR x.fence IS NOT NULL;
-- Whether a batch of a key's line waits: it is ready, or its claim has expired.
CREATE FUNCTION baton.waits(b baton.batch) RETURNS bool LANGUAGE sql STABLE AS $$
 SELECT b.state = 1 OR EXISTS (SELECT 1 FROM baton.claim o WHERE o.queue = b.queue
  AND o.lane = b.lane AND o.offered AND b.seq = ANY(o.seqs)) $$;
-- Whether somebody wants some of the claim cancelled.
CREATE FUNCTION baton.stops(c baton.claim) RETURNS bool LANGUAGE sql STABLE AS $$
 SELECT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = ANY(c.seqs) AND b.cancel) $$;
-- A batch of a key has just become ready: it, or another one, gives way as its queue wants it.
CREATE FUNCTION baton.rival_enter(of int, number bigint, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE q baton.queue; key text; holder bigint; holds bigint; waiting bigint; last bigint;
 gone bigint; other bigint; stopping bigint; was baton.batch;
BEGIN
 SELECT * INTO q FROM baton.queue WHERE id = of;
 SELECT b.lane INTO key FROM baton.batch b WHERE b.seq = number;
 SELECT count(*), min(x.seq) INTO holds, holder FROM (
  SELECT (SELECT min(s) FROM unnest(c.seqs) s) AS seq FROM baton.claim c WHERE c.queue = of
   AND c.lane = key AND NOT c.offered UNION ALL SELECT b.seq FROM baton.batch b
   WHERE b.queue = of AND b.lane = key AND b.holds) x;
 SELECT count(*) INTO waiting FROM (SELECT 1 FROM baton.batch b WHERE b.queue = of
  AND b.lane = key AND b.line AND b.seq <> number AND baton.waits(b)
  LIMIT q.key_limit + 1) x;
 SELECT b.seq INTO last FROM baton.batch b WHERE b.queue = of AND b.lane = key AND b.line
  AND b.seq <> number AND baton.waits(b) ORDER BY b.seq DESC LIMIT 1;
 IF q.on_conflict = 5 THEN
-- The oldest that has the key, or will, and was not asked to stop.
  SELECT count(*) INTO stopping FROM baton.claim c WHERE c.queue = of AND c.lane = key
   AND NOT c.offered AND baton.stops(c);
  IF holds - stopping + waiting < q.key_limit THEN RETURN; END IF;
  SELECT min(x.seq) INTO gone FROM (
   SELECT (SELECT min(s) FROM unnest(c.seqs) s) AS seq FROM baton.claim c
    WHERE c.queue = of AND c.lane = key AND NOT baton.stops(c)
   UNION ALL SELECT b.seq FROM baton.batch b WHERE b.queue = of AND b.lane = key AND b.holds
   UNION ALL (SELECT b.seq FROM baton.batch b WHERE b.queue = of AND b.lane = key AND b.line
    AND b.seq <> number AND b.state = 1 ORDER BY b.seq LIMIT 1)) x;
  other := number;
  SELECT * INTO was FROM baton.batch b WHERE b.seq = gone;
  IF was.state = 4 THEN
   UPDATE baton.batch b SET cancel = true, rival = (SELECT coalesce(o.born, o.seq)
    FROM baton.batch o WHERE o.seq = number) FROM baton.claim c WHERE c.queue = of
    AND c.lane = key AND gone = ANY(c.seqs) AND b.seq = ANY(c.seqs);
   RETURN;
  END IF;
  IF was.state = 3 THEN
   UPDATE baton.batch b SET state = 1, holds = false, blocks = false WHERE b.seq = gone;
   UPDATE baton.queue SET retrying = retrying - 1, ready = ready + 1 WHERE id = of;
  END IF;
 ELSIF q.on_conflict = 2 AND holds + waiting >= q.key_limit THEN
  gone := number;
  other := holder;
  IF holder IS NULL THEN
   SELECT b.seq INTO other FROM baton.batch b WHERE b.queue = of AND b.lane = key AND b.line
    AND b.seq <> number AND baton.waits(b) ORDER BY b.seq LIMIT 1;
  END IF;
 ELSIF waiting = 0 OR holds + waiting <= q.key_limit THEN
  RETURN;
 ELSIF q.on_conflict = 3 THEN
  gone := last;
  other := number;
 ELSIF q.on_conflict = 4 THEN
  gone := number;
  other := last;
 END IF;
 UPDATE baton.batch b SET state = 6, line = false, head = false, due = NULL,
  ended_at = now_ms, until = now_ms + CASE WHEN q.keep > 0 THEN q.keep / 1000000
  ELSE 3600000 END, rival = (SELECT coalesce(o.born, o.seq) FROM baton.batch o
  WHERE o.seq = other) WHERE b.seq = gone AND b.state = 1;
 IF FOUND THEN
  UPDATE baton.queue SET ready = ready - 1, kept = kept + 1 WHERE id = of;
 END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.tend(of int, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE touched text[]; moved bigint; n2 bigint; n3 bigint; r record;
BEGIN
 PERFORM baton.melt(ARRAY(SELECT DISTINCT x.first FROM (SELECT c.first FROM baton.chunk c
  WHERE c.queue = of AND c.expires_at <= now_ms AND c.expires_at < 9223372036854775807
  ORDER BY c.expires_at LIMIT 100) x));
 IF (SELECT q.on_conflict FROM baton.queue q WHERE q.id = of) > 1 THEN
-- One after the other: each may give way to those before it, or they to it; one that keeps its key
-- may be gone when its turn comes.
  touched := NULL;
  moved := 0;
  n2 := 0;
  n3 := 0;
  FOR r IN SELECT b.seq, b.state, b.lane, b.holds FROM baton.batch b WHERE b.queue = of
    AND b.state IN (2, 3) AND b.due <= now_ms ORDER BY b.due, b.seq LIMIT 1000 LOOP
   UPDATE baton.batch b SET state = 1, blocks = false, holds = false, head = b.lane IS NULL,
    line = b.lane IS NOT NULL, pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
    FROM baton.queue q WHERE b.seq = r.seq AND q.id = of AND b.state IN (2, 3);
   CONTINUE WHEN NOT FOUND;
   moved := moved + 1;
   n2 := n2 + (r.state = 2)::int;
   n3 := n3 + (r.state = 3)::int;
   IF r.lane IS NOT NULL THEN touched := array_append(touched, r.lane::text); END IF;
   IF baton.is_key(r.lane) AND NOT r.holds THEN
    PERFORM baton.rival_enter(of, r.seq, now_ms);
   END IF;
  END LOOP;
 ELSE
  WITH d AS MATERIALIZED (SELECT seq, state FROM baton.batch WHERE queue = of
    AND state IN (2, 3) AND due <= now_ms ORDER BY due, seq LIMIT 1000),
   u AS (UPDATE baton.batch b SET state = 1, blocks = false, holds = false,
    head = b.lane IS NULL,
    line = b.lane IS NOT NULL, pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
    FROM d, baton.queue q WHERE b.seq = d.seq AND q.id = of RETURNING b.lane, d.state)
  SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL), count(*),
   count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3)
   INTO touched, moved, n2, n3 FROM u;
 END IF;
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
  RAISE EXCEPTION 'both a lane and a key are given, and only one of them is allowed: a lane for '
   'jobs that run in order and one at a time, a key for those of which only so many may run at '
   'a time' USING ERRCODE = '22023';
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
 IF q.key_waiting_max > 0 AND key IS NOT NULL AND due_ms IS NULL AND (SELECT count(*) FROM (
   SELECT 1 FROM baton.batch b WHERE b.queue = q.id AND b.lane = chr(1) || key AND b.line
   AND baton.waits(b) LIMIT q.key_waiting_max) x) >= q.key_waiting_max THEN
  RAISE EXCEPTION 'key % of queue % has as many jobs waiting as its key_waiting_max allows, '
   '%: put again when some are done', quote_literal(key), quote_literal(queue),
   q.key_waiting_max USING ERRCODE = '54000';
 END IF;
 number := nextval('baton.seq');
 INSERT INTO baton.staged(id, xid, what, queue, lane, rank, flags, due, grp, payload,
  key, content) VALUES (number, pg_current_xact_id(), 'put', queue, coalesce(chr(1) || key, lane),
  9 - coalesce((options->>'priority')::int, 0), flags, due_ms, options->>'group',
 payload, key_hash, content_hash);
 RETURN number;
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
  UPDATE baton.batch SET state = 6, head = false, line = false, cancel = false, rival = NULL,
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
  CASE WHEN x.ready THEN NULL ELSE coalesce(x.due, now_at) END, x.grp, 0, 0, false, false, false,
 x.payload
  FROM (SELECT nextval('baton.seq') AS seq, y.* FROM (SELECT s.*, q.id AS qid, q.mode,
   baton.shard(s.queue, CASE WHEN baton.is_key(s.lane) THEN substr(s.lane, 2)
    ELSE s.lane END, s.id, q.shards) AS shard,
   (s.due IS NULL OR s.due <= now_at)
   AND NOT (q.on_conflict > 1 AND coalesce(baton.is_key(s.lane), false)) AS ready
   FROM baton.staged s
   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'
   ORDER BY s.id) y) x;
 FOR lanes IN SELECT q.id, count(*) AS n, count(*) FILTER (WHERE s.due > now_at
   OR (q.on_conflict > 1 AND coalesce(baton.is_key(s.lane), false))) AS late,
   bool_or(q.on_conflict > 1) AS judged,
   array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL) AS names FROM baton.staged s
   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'
   GROUP BY q.id ORDER BY q.id LOOP
  UPDATE baton.queue SET ready = ready + lanes.n - lanes.late,
   delayed = delayed + lanes.late WHERE id = lanes.id;
  IF lanes.names IS NOT NULL THEN
   PERFORM baton.settle(lanes.id, lanes.names, lanes.n);
  END IF;
  IF lanes.judged THEN PERFORM baton.tend(lanes.id, now_at); END IF;
 END LOOP;
END $$;
CREATE OR REPLACE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue,
 CASE WHEN baton.is_key(b.lane) THEN NULL ELSE b.lane END AS lane,
 CASE WHEN b.state = 6 AND b.rival IS NOT NULL THEN 'skipped' ELSE
  (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] END AS state,
 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,
 CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,
 convert_from(b.error, 'UTF8') AS error, b.payload,
 CASE WHEN baton.is_key(b.lane) THEN substr(b.lane, 2) END AS key,
 CASE WHEN b.state = 6 THEN b.rival END AS skipped_for
 FROM (SELECT seq, born, queue, lane, state, rank, attempts, put_at, due, error, payload,
 rival FROM baton.batch UNION ALL SELECT seq, born, queue, lane, state, rank, attempts, put_at, due,
 error, payload, rival FROM baton.member) b JOIN baton.queue q ON q.id = b.queue;
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
