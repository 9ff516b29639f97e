-- Who sleeps leaves a row; who commits takes it away and wakes them all. Nobody waits for such a
-- row, not even while a user's transaction has it.
CREATE UNLOGGED TABLE baton.sleeper(since bigint NOT NULL);
CREATE FUNCTION baton.ring(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 IF EXISTS (SELECT 1 FROM baton.sleeper) THEN
  DELETE FROM baton.sleeper WHERE ctid = ANY(ARRAY(SELECT ctid FROM baton.sleeper
   FOR UPDATE SKIP LOCKED));
  PERFORM pg_notify('baton', who);
 END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.on_commit() RETURNS trigger
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE mine xid8 := pg_current_xact_id(); s baton.staged;
BEGIN
 IF NOT EXISTS (SELECT 1 FROM baton.staged x WHERE x.xid = mine) THEN RETURN NULL; END
 IF;
 IF current_setting('transaction_isolation') <> 'read committed' THEN
  RAISE EXCEPTION 'a transaction that uses baton has to be READ COMMITTED'
   USING ERRCODE = '0A000';
 END IF;
 PERFORM pg_advisory_xact_lock(1650553967, x.stripe) FROM (SELECT DISTINCT
  baton.stripe(y.queue) AS stripe FROM baton.staged y WHERE y.xid = mine ORDER BY 1) x;
 FOR s IN SELECT * FROM baton.staged x WHERE x.xid = mine AND x.what <> 'put' LOOP
  IF s.what = 'complete' THEN PERFORM baton.staged_complete(s);
  ELSE PERFORM baton.staged_cancel(s); END IF;
 END LOOP;
 PERFORM baton.staged_put(mine);
 DELETE FROM baton.staged x WHERE x.xid = mine;
 PERFORM baton.ring('');
 RETURN NULL;
END $$;
-- Source keys: what is remembered of them is the same as in C. Who puts one in his own
-- transaction locks it until the end, so that two of them get the same answer.
ALTER TABLE baton.staged ADD COLUMN key bytea, ADD COLUMN content bytea;
CREATE FUNCTION baton.packed(word text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
 SELECT int8send(octet_length(word)) || convert_to(word, 'UTF8') $$;
CREATE FUNCTION baton.known(key_hash bytea, content_hash bytea) RETURNS bigint
 LANGUAGE plpgsql AS $$
DECLARE known_id bigint; known_content bytea;
BEGIN
 PERFORM pg_advisory_xact_lock(1650553968, ('x' || encode(substring(key_hash FROM 1
  FOR 4), 'hex'))::bit(32)::int);
 SELECT s.id, s.content INTO known_id, known_content FROM baton.staged s
  WHERE s.xid = pg_current_xact_id() AND s.key = key_hash;
 IF known_id IS NULL THEN
  SELECT o.id, o.content INTO known_id, known_content FROM baton.source o
   WHERE o.key = key_hash AND (o.until > baton.now_ms()
   OR (baton.find(o.id)).seq IS NOT NULL);
 END IF;
 IF known_content <> content_hash THEN
  RAISE EXCEPTION 'the source key was put with other content, as job %', known_id
   USING ERRCODE = 'BT003';
 END IF;
 RETURN known_id;
END $$;
CREATE OR REPLACE FUNCTION baton.put(queue text, payload bytea, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE q baton.queue; number bigint; flags int := 0; wait interval; word text; due_ms
 bigint; source_key text := options->>'source'; key_hash bytea; content_hash bytea;
BEGIN
 PERFORM baton.check_name('the queue', queue);
 IF lane IS NOT NULL THEN PERFORM baton.check_name('the lane', lane); END IF;
 FOR word IN SELECT jsonb_object_keys(options) LOOP
  IF word NOT IN ('priority', 'delay', 'class', 'delivery', 'slot', 'group',
   'source') THEN
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
   || int8send(1) || int8send(octet_length(payload)) || payload);
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
  key, content) VALUES (number, pg_current_xact_id(), 'put', queue, lane,
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
   baton.shard(s.queue, s.lane, s.id, q.shards) AS shard,
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
-- A renewal leaves the key of a lease's row alone, and so does not wait for who is admitted;
-- whoever gives it another fence locks all of it first.
CREATE FUNCTION baton.admit(subject text, fence bigint) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
 PERFORM 1 FROM baton.lease l WHERE l.subject = admit.subject AND l.fence = admit.fence
  AND l.held FOR KEY SHARE;
 IF NOT FOUND THEN
  RAISE EXCEPTION '% is not held under fence %', quote_literal(subject), fence
   USING ERRCODE = 'BT002';
 END IF;
END $$;
CREATE FUNCTION baton.guard(subjects text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 IF (SELECT count(*) FROM (SELECT 1 FROM baton.lease WHERE subject = ANY(subjects)
   FOR UPDATE SKIP LOCKED) x) < cardinality(subjects) THEN
  RAISE EXCEPTION 'somebody was admitted under the fence before'
   USING ERRCODE = 'BT004';
 END IF;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;
DO $$ BEGIN
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT SELECT, INSERT, UPDATE, DELETE ON baton.sleeper TO baton_runner, baton_operator;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;
 END IF;
END $$;
