-- Forgets what is no longer needed, at most so many.
CREATE OR REPLACE FUNCTION baton.tidy(now_ms bigint, most bigint) RETURNS bigint
 LANGUAGE plpgsql AS $$
DECLARE n bigint; total bigint := 0; was baton.sweep; now_at baton.sweep; own baton.queue;
BEGIN
 SELECT * INTO was FROM baton.sweep s ORDER BY s.n DESC LIMIT 1;
 IF NOT FOUND THEN was := (0, 0, 0); END IF;
-- Of queues whose locks are free: whoever has one may write to the same row, and to those of other
-- queues after it.
 WITH x AS MATERIALIZED (SELECT b.seq, b.queue FROM baton.batch b WHERE b.state = 6
   AND b.until <= now_ms ORDER BY b.until LIMIT most),
  f AS MATERIALIZED (SELECT q.id FROM (SELECT DISTINCT x.queue FROM x) y JOIN baton.queue q
   ON q.id = y.queue WHERE pg_try_advisory_xact_lock(1650553967, q.stripe)),
  d AS (DELETE FROM baton.batch WHERE seq = ANY(ARRAY(SELECT x.seq FROM x JOIN f
   ON f.id = x.queue)) AND state = 6 RETURNING queue),
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
 WITH x AS MATERIALIZED (SELECT a.head, a.fence, a.until FROM baton.answer a
   WHERE a.head > was.answers ORDER BY a.head LIMIT most - total),
  d AS (DELETE FROM baton.answer a USING x WHERE a.head = x.head AND a.fence = x.fence
   AND x.until <= now_ms RETURNING 1)
 SELECT (SELECT count(*) FROM d), CASE WHEN count(*) < most - total THEN 0
  ELSE max(x.head) END INTO n, now_at.answers FROM x;
 total := total + n;
 WITH x AS MATERIALIZED (SELECT r.ctid AS at, r.base, r.until FROM baton.reply r
   WHERE r.base > was.replies ORDER BY r.base LIMIT most - total),
  d AS (DELETE FROM baton.reply r USING x WHERE r.ctid = x.at AND x.until <= now_ms
   RETURNING 1)
 SELECT (SELECT count(*) FROM d), CASE WHEN count(*) < most - total THEN 0
  ELSE max(x.base) - 1 END INTO n, now_at.replies FROM x;
-- Neither is known if there was no room left to look.
 now_at := (was.n + 1, coalesce(now_at.answers, was.answers),
  coalesce(now_at.replies, was.replies));
 IF (was.answers, was.replies) <> (now_at.answers, now_at.replies) THEN
  DELETE FROM baton.sweep s WHERE s.n = was.n;
  INSERT INTO baton.sweep SELECT now_at.* ON CONFLICT DO NOTHING;
 END IF;
 total := total + n;
-- Whose window is over may start again, in queues that nobody claims from, too.
 FOR own IN SELECT q.* FROM baton.queue q WHERE q.key_starts > 0 AND EXISTS (SELECT 1
   FROM baton.rate r WHERE r.queue = q.id AND r.until <= now_ms) LIMIT most LOOP
  CONTINUE WHEN NOT pg_try_advisory_xact_lock(1650553967, own.stripe);
  SELECT * INTO own FROM baton.queue q WHERE q.id = own.id;
  CONTINUE WHEN own.key_class <> '' AND NOT pg_try_advisory_xact_lock(1650553967,
   baton.class_stripe(own.key_class));
  PERFORM baton.rate_see(own, 0, now_ms);
-- Nobody claims now who would see what is there.
  PERFORM baton.touch(m.id) FROM baton.queue m WHERE m.id = own.id
   OR (own.key_class <> '' AND m.key_class = own.key_class);
  PERFORM baton.ring('');
 END LOOP;
 DELETE FROM baton.rate r WHERE r.ctid = ANY(ARRAY(SELECT y.ctid FROM baton.rate y
  WHERE y.until IS NULL AND y.over <= now_ms ORDER BY y.over LIMIT most - total
  FOR UPDATE SKIP LOCKED));
 GET DIAGNOSTICS n = ROW_COUNT;
 total := total + n;
-- Without it a lane is walked through once more, if it is used and the snapshot is still there.
 DELETE FROM baton.past p WHERE p.ctid = ANY(ARRAY(SELECT y.ctid FROM baton.past y
  WHERE y.at <= now_ms - 86400000 ORDER BY y.at LIMIT most - total FOR UPDATE SKIP LOCKED));
 GET DIAGNOSTICS n = ROW_COUNT;
 RETURN total + n;
END $$;
