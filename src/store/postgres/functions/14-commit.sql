CREATE OR REPLACE FUNCTION baton.ring(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 IF EXISTS (SELECT 1 FROM baton.sleeper) THEN
  DELETE FROM baton.sleeper WHERE ctid = ANY(ARRAY(SELECT ctid FROM baton.sleeper
   FOR UPDATE SKIP LOCKED));
  PERFORM pg_notify('baton', who);
 END IF;
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
  UPDATE baton.batch SET state = 6, head = false, line = false, asks = false, cancel = false,
   rival = NULL, fence = s.fence, ended_at = baton.now_ms(),
   until = baton.now_ms() + q.keep / 1000000
   WHERE seq = ANY(c.seqs);
 ELSE
  DELETE FROM baton.batch WHERE seq = ANY(c.seqs);
 END IF;
 UPDATE baton.queue SET claimed = claimed - n, done = done + n,
  kept = kept + CASE WHEN q.keep > 0 THEN n ELSE 0 END WHERE id = c.queue;
 INSERT INTO baton.answer(head, fence, token, state, until) VALUES (s.head, s.fence,
 s.token,
  CASE WHEN q.keep > 0 THEN 6 ELSE 7 END, baton.now_ms() + q.dedupe / 1000000);
 IF c.lane IS NOT NULL THEN
  PERFORM baton.settle(c.queue, c.lane || baton.lines(c.guest), n);
 END IF;
 IF q.key_fair > 1 AND baton.is_key(c.lane) THEN
  PERFORM baton.pace_leave(c.queue, ARRAY[c.lane]);
 END IF;
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
  IF b.lane IS NOT NULL THEN
   PERFORM baton.settle(b.queue, b.lane || baton.lines(b.guest), 1);
  END IF;
  IF baton.is_key(b.lane) AND (SELECT q.key_fair FROM baton.queue q WHERE q.id = b.queue) > 1 THEN
   PERFORM baton.pace_leave(b.queue, ARRAY[b.lane]);
  END IF;
 END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.staged_put(mine xid8) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE lanes record; now_at bigint := baton.now_ms(); own baton.queue;
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
-- Who stages a lane and a key, or several, has looked before, but without the lock.
 FOR own IN SELECT * FROM baton.queue x WHERE x.name IN (SELECT s.queue FROM baton.staged s
   WHERE s.xid = mine AND s.what = 'put' AND s.guest IS NOT NULL) LOOP
  PERFORM baton.check_guests(own, EXISTS (SELECT 1 FROM baton.staged s WHERE s.xid = mine
   AND s.queue = own.name AND baton.is_several(s.guest)));
  IF NOT own.guests THEN
   UPDATE baton.queue SET guests = true WHERE id = own.id;
   PERFORM baton.melt(ARRAY(SELECT b.first FROM baton.bulk b WHERE b.queue = own.id
    AND b.keys IS NOT NULL ORDER BY b.first));
  END IF;
 END LOOP;
-- Where keys do not count in the cluster each has a line in each shard.
 UPDATE baton.staged s SET lane = s.lane || chr(3) || s.id % q.shards FROM baton.queue q
  WHERE s.xid = mine AND s.what = 'put' AND q.name = s.queue AND q.key_scope < 3
  AND baton.is_key(s.lane);
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
  put_at, due, grp, attempts, fence, cancel, holds, blocks, payload, guest)
  SELECT x.seq, x.id, x.qid, x.lane, x.shard, CASE WHEN x.mode = 4 THEN x.shard + 1
  ELSE 0 END, x.lane IS NULL AND x.ready, x.lane IS NOT NULL AND x.ready,
  CASE WHEN x.ready THEN 1 ELSE 2 END, x.rank, x.flags, now_at,
  CASE WHEN x.ready THEN NULL ELSE coalesce(x.due, now_at) END, x.grp, 0, 0, false, false, false,
 x.payload, x.guest
  FROM (SELECT nextval('baton.seq') AS seq, y.* FROM (SELECT s.*, q.id AS qid, q.mode,
   baton.shard(s.queue, CASE WHEN strpos(s.lane, chr(3)) > 0 THEN NULL
    WHEN baton.is_key(s.lane) THEN substr(s.lane, 2) ELSE s.lane END, s.id, q.shards) AS shard,
   (s.due IS NULL OR s.due <= now_at)
   AND NOT (q.on_conflict > 1 AND coalesce(baton.is_key(s.lane), false)) AS ready
   FROM baton.staged s
   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'
   ORDER BY s.id) y) x;
 FOR lanes IN SELECT q.id, count(*) AS n, count(*) FILTER (WHERE s.due > now_at
   OR (q.on_conflict > 1 AND coalesce(baton.is_key(s.lane), false))) AS late,
   bool_or(q.on_conflict > 1) AS judged, min(s.due) AS due,
   array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL) AS names FROM baton.staged s
   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'
   GROUP BY q.id ORDER BY q.id LOOP
  UPDATE baton.queue SET ready = ready + lanes.n - lanes.late,
   delayed = delayed + lanes.late WHERE id = lanes.id;
  IF lanes.names IS NOT NULL THEN
   PERFORM baton.settle(lanes.id, lanes.names, lanes.n);
  END IF;
  IF lanes.late > 0 THEN PERFORM baton.untend(lanes.id, least(now_at, lanes.due)); END IF;
  IF lanes.judged THEN PERFORM baton.tend(lanes.id, now_at); END IF;
 END LOOP;
END $$;
-- All that a transaction has staged is done by the first of its triggers. The others look for their
-- own row, and not for any: they would walk over all that the first has removed.
CREATE OR REPLACE FUNCTION baton.on_commit() RETURNS trigger
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
 SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
 SET enable_mergejoin = off SET jit = off AS $$
DECLARE mine xid8 := pg_current_xact_id(); s baton.staged;
BEGIN
 IF NOT EXISTS (SELECT 1 FROM baton.staged x WHERE x.xid = mine AND x.id = NEW.id) THEN
  RETURN NULL;
 END IF;
 IF current_setting('transaction_isolation') <> 'read committed' THEN
  RAISE EXCEPTION 'a transaction that uses baton has to be READ COMMITTED'
   USING ERRCODE = '0A000';
 END IF;
 PERFORM pg_advisory_xact_lock(1650553967, x.stripe) FROM (SELECT DISTINCT
  baton.stripe(y.queue) AS stripe FROM baton.staged y WHERE y.xid = mine ORDER BY 1) x;
-- Which class a queue is of changes only under its own lock.
 PERFORM pg_advisory_xact_lock(1650553967, x.stripe) FROM (SELECT DISTINCT
  baton.class_stripe(q.key_class) AS stripe FROM (SELECT DISTINCT y.queue FROM baton.staged y
   WHERE y.xid = mine) y JOIN baton.queue q ON q.name = y.queue WHERE q.key_class <> ''
  ORDER BY 1) x;
 FOR s IN SELECT * FROM baton.staged x WHERE x.xid = mine AND x.what <> 'put' LOOP
  IF s.what = 'complete' THEN PERFORM baton.staged_complete(s);
  ELSE PERFORM baton.staged_cancel(s); END IF;
 END LOOP;
 PERFORM baton.staged_put(mine);
 DELETE FROM baton.staged x WHERE x.xid = mine;
 PERFORM baton.ring('');
 RETURN NULL;
END $$;
