-- Those who wait look whether a queue's last row of counts is another one.
CREATE OR REPLACE FUNCTION baton.touch(of int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE was baton.tally;
BEGIN
 SELECT * INTO was FROM baton.tally t WHERE t.queue = of ORDER BY t.n DESC LIMIT 1;
 IF FOUND THEN
  DELETE FROM baton.tally t WHERE t.queue = of AND t.n = was.n;
  was.n := was.n + 1;
 ELSE
  SELECT of, 1, 0, 0, 0, 0, 0, 0, 0, 0, q.top, q.floor, 0, 0 INTO was FROM baton.queue q
   WHERE q.id = of;
 END IF;
 INSERT INTO baton.tally SELECT was.*;
END $$;
-- The same for all that have their keys in common with it, and are claimed from by runners: whoever
-- has the shards of a key may be somebody else, and sleep.
CREATE OR REPLACE FUNCTION baton.touch_all(own baton.queue) RETURNS void LANGUAGE plpgsql AS $$
DECLARE other int;
BEGIN
 IF own.mode = 4 THEN PERFORM baton.touch(own.id); END IF;
 IF own.key_class <> '' THEN
  FOR other IN SELECT m.id FROM baton.queue m WHERE m.key_class = own.key_class
    AND m.key_class <> '' AND m.id <> own.id AND m.mode = 4 LOOP
   PERFORM baton.touch(other);
  END LOOP;
 END IF;
 IF own.mode = 4 OR own.key_class <> '' THEN PERFORM baton.ring(''); END IF;
END $$;
-- Keys that may start again, the first thousand; and those that would wait for longer than a
-- window, since the clock was set back, do so no more. False: there may be more.
CREATE OR REPLACE FUNCTION baton.rate_see(own baton.queue, since bigint, now_ms bigint)
 RETURNS bool LANGUAGE plpgsql AS $$
DECLARE touched text[]; span bigint := baton.window_ms(own); n bigint; freed bigint;
BEGIN
 WITH x AS MATERIALIZED (SELECT r.lane FROM baton.rate r WHERE r.queue = own.id
   AND r.until >= since AND r.until <= now_ms ORDER BY r.until LIMIT 1000),
  u AS (UPDATE baton.rate r SET until = NULL FROM x WHERE r.queue = own.id AND r.lane = x.lane
   RETURNING r.lane)
 SELECT array_agg(u.lane) FILTER (WHERE baton.is_key(u.lane)), count(*) INTO touched, freed
  FROM u;
 IF freed > 0 THEN
  IF touched IS NOT NULL THEN PERFORM baton.settle(own.id, touched, 0); END IF;
  PERFORM baton.touch_all(own);
 END IF;
 UPDATE baton.rate r SET until = now_ms + span, over = now_ms + span,
  starts = ARRAY(SELECT least(s, now_ms) FROM unnest(r.starts) s ORDER BY s)
  WHERE r.queue = own.id AND r.lane IN (SELECT y.lane FROM baton.rate y WHERE y.queue = own.id
   AND y.until > now_ms + span ORDER BY y.until LIMIT 1000);
 GET DIAGNOSTICS n = ROW_COUNT;
 IF n > 0 THEN
  PERFORM baton.untend(own.id, now_ms + span);
 END IF;
 RETURN freed < 1000 AND n < 1000;
END $$;
-- With what the names of starts begin that count where that owner is: as rate_site() has it.
CREATE OR REPLACE FUNCTION baton.site(owner text, scope int) RETURNS text LANGUAGE sql IMMUTABLE
 AS $$
 SELECT chr(3) || CASE WHEN scope = 2 AND split_part(owner, ':', 2) <> ''
  THEN 'h' || split_part(owner, ':', 2) ELSE 'p' || split_part(owner, ':', 1) END $$;
-- A runner is gone, and what it has started counts no more. Of queues that nobody has locked: the
-- others are forgotten when they have left the window.
CREATE OR REPLACE FUNCTION baton.rate_forget(owner text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 DELETE FROM baton.rate r WHERE r.ctid = ANY(ARRAY(SELECT y.ctid FROM baton.queue q
  JOIN baton.rate y ON y.queue = q.id AND y.lane > baton.site(owner, 1) || chr(1)
  AND y.lane < baton.site(owner, 1) || chr(2) WHERE q.key_scope = 1 LIMIT 1000
  FOR UPDATE OF y SKIP LOCKED));
END $$;
-- Whether nobody is in the line of a key, or holds it.
CREATE OR REPLACE FUNCTION baton.key_is_idle(of int, key text) RETURNS bool LANGUAGE sql STABLE
 AS $$
 SELECT NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = of
   AND b.lane BETWEEN key AND key AND b.line)
  AND NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = of AND b.lane = key AND b.holds)
  AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = of AND c.lane = key) $$;
-- A batch that was put before others is about to enter the line of a key that takes turns: what
-- line_turn() says.
CREATE OR REPLACE FUNCTION baton.pace_enter(of int, key text, number bigint) RETURNS void
 LANGUAGE plpgsql AS $$
BEGIN
 INSERT INTO baton.pace(queue, lane, turn) SELECT of, key, x.turn FROM (SELECT CASE
   WHEN baton.key_is_idle(of, key) THEN (SELECT s.last_value FROM baton.seq s)
   ELSE (SELECT k.seq FROM baton.key_state(of, key) k) END AS turn) x WHERE x.turn > number
  ON CONFLICT (queue, lane) DO UPDATE SET turn = greatest(pace.turn, excluded.turn);
END $$;
-- Forgets the turns of keys that nobody has any more.
CREATE OR REPLACE FUNCTION baton.pace_leave(of int, keys text[]) RETURNS void
 LANGUAGE plpgsql AS $$
BEGIN
 DELETE FROM baton.pace p WHERE p.queue = of AND p.lane = ANY(keys)
  AND baton.key_is_idle(of, p.lane);
END $$;
