-- For users' own transactions. What they ask for is staged, and done when they commit: only then
-- are the locks of queues taken, and numbers given, so that nobody waits for them.
CREATE UNLOGGED TABLE baton.staged(
 id bigint NOT NULL, xid xid8 NOT NULL, what text NOT NULL, queue text COLLATE "C"
 NOT NULL,
 lane text COLLATE "C", rank smallint, flags smallint, due bigint, grp text, payload
 bytea,
 head bigint, fence bigint, token bytea);
CREATE INDEX staged_xid ON baton.staged(xid);
CREATE FUNCTION baton.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
 SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
CREATE FUNCTION baton.stripe(name text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
 SELECT 64 + (((get_byte(h, 0) << 8) | get_byte(h, 1)) & 1023)
 FROM (SELECT sha256(convert_to(name, 'UTF8')) AS h) x $$;
CREATE FUNCTION baton.shard(queue text, lane text, id bigint, shards int) RETURNS int
 LANGUAGE sql IMMUTABLE AS $$
 SELECT (CASE WHEN lane IS NULL THEN id ELSE ('x' || encode(substring(sha256(
  convert_to(queue, 'UTF8') || '\x00'::bytea || convert_to(lane, 'UTF8'))
  FROM 1 FOR 7), 'hex'))::bit(56)::bigint END % shards)::int $$;
CREATE FUNCTION baton.check_name(what text, name text) RETURNS void
 LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
 IF name IS NULL OR octet_length(name) NOT BETWEEN 1 AND 255 THEN
  RAISE EXCEPTION '% has % bytes: 1 to 255 are allowed', what,
   coalesce(octet_length(name), 0) USING ERRCODE = '22023';
 END IF;
 IF name ~ '[\x01-\x1f\x7f]' OR (what = 'the queue' AND strpos(name, '/') > 0) THEN
  RAISE EXCEPTION '% has a character that is not allowed', what USING ERRCODE = '22023';
 END IF;
END $$;
CREATE FUNCTION baton.put(queue text, payload bytea, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE q baton.queue; number bigint; flags int := 0; wait interval; word text; due_ms
 bigint;
BEGIN
 PERFORM baton.check_name('the queue', queue);
 IF lane IS NOT NULL THEN PERFORM baton.check_name('the lane', lane); END IF;
 FOR word IN SELECT jsonb_object_keys(options) LOOP
  IF word NOT IN ('priority', 'delay', 'class', 'delivery', 'slot', 'group') THEN
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
 IF q.waiting_max > 0 AND q.ready + q.delayed + q.retrying >= q.waiting_max THEN
  RAISE EXCEPTION
 'queue % has % jobs waiting, and its waiting_max is %: put again when '
   'some are done', quote_literal(queue), q.ready + q.delayed + q.retrying,
 q.waiting_max
   USING ERRCODE = '54000';
 END IF;
 number := nextval('baton.seq');
 INSERT INTO baton.staged(id, xid, what, queue, lane, rank, flags, due, grp, payload)
  VALUES (number, pg_current_xact_id(), 'put', queue, lane,
  9 - coalesce((options->>'priority')::int, 0), flags, due_ms, options->>'group',
 payload);
 RETURN number;
END $$;
CREATE FUNCTION baton.put(queue text, payload text, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, convert_to(payload, 'UTF8'), lane, options) $$;
CREATE FUNCTION baton.put(queue text, payload jsonb, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, convert_to(payload::text, 'UTF8'), lane, options) $$;
CREATE FUNCTION baton.put_many(queue text, payloads bytea[], lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;
CREATE FUNCTION baton.put_many(queue text, payloads text[], lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;
CREATE FUNCTION baton.find(number bigint) RETURNS baton.batch LANGUAGE sql STABLE AS $$
 (SELECT * FROM baton.batch WHERE seq = number AND born IS NULL) UNION ALL
 (SELECT * FROM baton.batch WHERE born = number) LIMIT 1 $$;
-- True: there is such a job; it is removed, or its holder told, when the user commits.
CREATE FUNCTION baton.cancel(id bigint) RETURNS bool
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE b baton.batch := baton.find(id);
BEGIN
 IF b.seq IS NULL OR b.state = 6 THEN
  DELETE FROM baton.staged s WHERE s.xid = pg_current_xact_id() AND s.what = 'put'
   AND s.id = cancel.id;
  RETURN FOUND;
 END IF;
 INSERT INTO baton.staged(id, xid, what, queue) SELECT cancel.id, pg_current_xact_id(),
  'cancel', q.name FROM baton.queue q WHERE q.id = b.queue;
 RETURN true;
END $$;
-- Ends a claim when the user commits. If it is lost by then, the commit fails.
CREATE FUNCTION baton.complete(claim text, token text) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE c baton.claim;
BEGIN
 IF claim !~ '^[0-9]{1,18}-[0-9]{1,18}$' OR token !~ '^[0-9a-f]{32}$' THEN
  RAISE EXCEPTION 'this is no claim, or no token' USING ERRCODE = '22023';
 END IF;
 SELECT * INTO c FROM baton.claim x WHERE x.head = split_part(claim, '-', 1)::bigint
  AND x.fence = split_part(claim, '-', 2)::bigint AND x.token = decode(complete.token,
 'hex');
 IF c.head IS NULL THEN
  RAISE EXCEPTION 'claim % is not held any more', claim USING ERRCODE = 'BT002';
 END IF;
 INSERT INTO baton.staged(id, xid, what, queue, head, fence, token)
  SELECT 0, pg_current_xact_id(), 'complete', q.name, c.head, c.fence, c.token
  FROM baton.queue q WHERE q.id = c.queue;
END $$;
CREATE FUNCTION baton.staged_complete(s baton.staged) RETURNS void LANGUAGE plpgsql AS
 $$
DECLARE c baton.claim; q baton.queue; n bigint;
BEGIN
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
CREATE FUNCTION baton.staged_cancel(s baton.staged) RETURNS void LANGUAGE plpgsql AS $$
DECLARE b baton.batch := baton.find(s.id);
BEGIN
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
CREATE FUNCTION baton.staged_put(mine xid8) RETURNS void LANGUAGE plpgsql AS $$
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
-- All that a transaction has staged is done by the first of its triggers.
CREATE FUNCTION baton.on_commit() RETURNS trigger
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
 RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER staged AFTER INSERT ON baton.staged
 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION baton.on_commit();
CREATE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue, b.lane,
 (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] AS state,
 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,
 CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,
 convert_from(b.error, 'UTF8') AS error, b.payload
 FROM baton.batch b JOIN baton.queue q ON q.id = b.queue;
-- Who may what. Roles belong to a whole server, so they may be there already.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;
DO $$ DECLARE r text; BEGIN
 FOREACH r IN ARRAY ARRAY['baton_put', 'baton_runner', 'baton_operator'] LOOP
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN
   BEGIN EXECUTE format('CREATE ROLE %I NOLOGIN', r);
   EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
 NULL;
   END;
  END IF;
 END LOOP;
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT USAGE ON SCHEMA baton TO baton_put, baton_runner, baton_operator;
  GRANT EXECUTE ON FUNCTION baton.put(text, bytea, text, jsonb),
   baton.put(text, text, text, jsonb), baton.put(text, jsonb, text, jsonb),
   baton.put_many(text, bytea[], text, jsonb), baton.put_many(text, text[], text, jsonb)
   TO baton_put, baton_operator;
  GRANT EXECUTE ON FUNCTION baton.cancel(bigint) TO baton_operator;
  GRANT EXECUTE ON FUNCTION baton.complete(text, text) TO baton_runner, baton_operator;
  GRANT SELECT ON baton.jobs TO baton_operator;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;
 END IF;
END $$;
