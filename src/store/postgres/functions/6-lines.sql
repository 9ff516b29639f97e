-- Lines are read by `lane BETWEEN x AND x ... ORDER BY lane, seq`, here and in the library: of all
-- indexes only that over lines gives this order. With `lane = x ... ORDER BY seq` the planner takes
-- the one over numbers as soon as the statistics say that most batches are in one line, and walks
-- over all of these to find another one.
--
-- What is called for each call of a library is in PL/pgSQL, which plans it once for a connection:
-- a function in SQL is planned each time.
--
-- Whether a claim of the key can begin, and with which batch: the first that is ready, or whose
-- claim has expired, or the first of a lane that asks for the key (`guest`), if that is the first
-- of its other keys, too (`whole`), and these can be claimed. `busy`: how many of its line are
-- claimed.
CREATE FUNCTION baton.key_state(of int, key text, whole bool DEFAULT true, OUT seq bigint,
 OUT head bool, OUT free bool, OUT busy bigint, OUT guest bool) LANGUAGE plpgsql STABLE AS $$
DECLARE lanes bool; room bigint; asker bigint; led bool; other bigint; other_led bool; class text;
BEGIN
 SELECT f.seq, coalesce(f.head, false), c.batches, q.guests, q.key_class, CASE
  WHEN q.key_scope < 3 THEN 1 WHEN q.key_starts = 0
  OR NOT CASE WHEN q.key_class = '' THEN EXISTS (SELECT 1 FROM baton.rate r WHERE r.queue = of
    AND r.lane = key AND coalesce(r.until, 0) > 0)
   ELSE EXISTS (SELECT 1 FROM baton.rate_of(of, key) r WHERE r.until > 0) END
  THEN q.key_limit - c.live - k.kept ELSE 0 END
  INTO seq, head, busy, lanes, class, room FROM baton.queue q
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE NOT c.offered) AS live,
  coalesce(sum(cardinality(c.seqs)), 0)::bigint AS batches FROM baton.claim c
  WHERE c.queue = of AND c.lane = key) c
 CROSS JOIN LATERAL (SELECT count(*) AS kept FROM baton.batch b WHERE b.queue = of
  AND b.lane = key AND b.holds) k
 LEFT JOIN LATERAL (SELECT b.seq, b.head FROM baton.batch b WHERE b.queue = of
  AND b.lane BETWEEN key AND key AND b.line AND (b.state = 1 OR EXISTS (SELECT 1
   FROM baton.claim o WHERE o.queue = of AND o.lane = key AND o.offered
   AND b.seq = ANY(o.seqs))) ORDER BY b.lane, b.seq LIMIT 1) f ON true WHERE q.id = of;
 guest := false;
 IF class <> '' AND room > 0 THEN room := room - baton.class_holds(of, class, key); END IF;
 IF lanes THEN
  room := room - (SELECT count(*) FROM baton.claim c WHERE c.queue = of AND c.guest = key
   AND NOT c.offered) - (SELECT count(*) FROM baton.batch b WHERE b.queue = of
   AND b.guest = key AND b.keeps) - (SELECT count(*) FROM baton.hold h WHERE h.queue = of
   AND h.line = key AND (h.fence = 0 OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.head = h.seq
    AND c.fence = h.fence AND NOT c.offered OFFSET 0)));
  SELECT b.seq, b.head INTO asker, led FROM baton.batch b WHERE b.queue = of
   AND b.guest BETWEEN key AND key AND b.asks ORDER BY b.guest, b.seq LIMIT 1;
  SELECT a.seq, a.head INTO other, other_led FROM baton.ask a WHERE a.queue = of
   AND a.line BETWEEN key AND key ORDER BY a.line, a.seq LIMIT 1;
  IF other < coalesce(asker, other + 1) THEN
   asker := other;
   led := other_led;
  END IF;
  guest := asker IS NOT NULL AND (seq IS NULL OR asker < seq);
  IF guest THEN seq := asker; head := led; END IF;
 END IF;
 free := seq IS NOT NULL AND room > 0;
 IF free AND guest AND whole AND seq = other THEN
  free := NOT EXISTS (SELECT 1 FROM unnest(baton.lines((SELECT b.guest FROM baton.batch b
    WHERE b.seq = other))) x(line) CROSS JOIN LATERAL baton.key_state(of, x.line, false) k
   WHERE x.line <> key AND NOT (k.free AND k.seq = other));
 END IF;
END $$;
-- At most one has the head of a key: in its line, or in a lane.
CREATE OR REPLACE FUNCTION baton.settle_guests(of int, keys text[]) RETURNS void
 LANGUAGE plpgsql AS $$
BEGIN
 WITH l AS MATERIALIZED (
  SELECT x.key, q.mode, k.* FROM (SELECT DISTINCT unnest(keys) AS key) x
  JOIN baton.queue q ON q.id = of CROSS JOIN LATERAL baton.key_state(of, x.key) k),
 n AS (
  SELECT y.seq, l.free AND y.seq = l.seq AS head, l.mode FROM l CROSS JOIN LATERAL (
   SELECT b.seq FROM baton.batch b WHERE b.queue = of AND b.guest = l.key AND b.head
   UNION SELECT a.seq FROM baton.ask a WHERE a.queue = of AND a.line = l.key AND a.head
   UNION SELECT l.seq WHERE l.free AND l.guest) y)
 UPDATE baton.batch b SET head = n.head,
  pool = CASE WHEN n.mode = 4 THEN b.shard + 1 ELSE 0 END
 FROM n WHERE b.seq = n.seq AND b.head <> n.head;
END $$;
CREATE OR REPLACE FUNCTION baton.settle_own(of int, keys text[], entered bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE hits text[] := baton.thaw(of, keys);
BEGIN
-- Each of them was the first of its line, and somebody else may be.
 IF hits IS NOT NULL THEN
  UPDATE baton.batch b SET head = false WHERE b.queue = of AND b.lane = ANY(hits) AND b.line
   AND b.head;
 END IF;
 WITH l AS MATERIALIZED (
  SELECT x.key, q.mode, q.key_fair, k.* FROM (SELECT DISTINCT unnest(keys) AS key) x
  JOIN baton.queue q ON q.id = of CROSS JOIN LATERAL baton.key_state(of, x.key) k),
 n AS (
  SELECT y.seq, l.free AND y.seq = l.seq AS head, l.mode, CASE WHEN l.key_fair = 2 AND l.free
   AND y.seq = l.seq THEN (SELECT p.turn * 2 + 1 FROM baton.pace p WHERE p.queue = of
   AND p.lane = l.key AND p.turn > l.seq) END AS place FROM l
  CROSS JOIN LATERAL (SELECT b.seq, b.head FROM baton.batch b WHERE b.queue = of
   AND b.lane BETWEEN l.key AND l.key AND b.line ORDER BY b.lane, b.seq
   LIMIT entered + l.busy + 2) y
  WHERE NOT (l.free AND l.head) AND y.head <> (l.free AND y.seq = l.seq))
 UPDATE baton.batch b SET head = n.head, place = n.place,
  pool = CASE WHEN n.mode = 4 THEN b.shard + 1 ELSE 0 END
 FROM n WHERE b.seq = n.seq;
 IF (SELECT q.guests FROM baton.queue q WHERE q.id = of) THEN
  PERFORM baton.settle_guests(of, keys);
 END IF;
END $$;
-- Who holds a key of a class counts in all of its queues.
CREATE OR REPLACE FUNCTION baton.settle_keys(of int, keys text[], entered bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE class text; other int;
BEGIN
 PERFORM baton.settle_own(of, keys, entered);
 SELECT q.key_class INTO class FROM baton.queue q WHERE q.id = of;
 IF class = '' THEN RETURN; END IF;
 FOR other IN SELECT m.id FROM baton.queue m WHERE m.key_class = class AND m.key_class <> ''
   AND m.id <> of ORDER BY m.id LOOP
  PERFORM baton.settle_own(other, keys, 0);
 END LOOP;
END $$;
-- How many rows that are gone this connection has come across in the lines of lanes.
CREATE OR REPLACE FUNCTION baton.walked() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN pg_stat_get_xact_tuples_returned('baton.batch_line'::regclass)
  - pg_stat_get_xact_tuples_fetched('baton.batch_line'::regclass);
END $$;
-- What is gone stays in the indexes over lanes as long as somebody holds an old snapshot. Of a lane
-- in which much of it was walked over, it is written down up to which number there is nothing else;
-- whoever brings something back that is before it takes that back. The lock of the queue is held.
CREATE OR REPLACE FUNCTION baton.pass(of int, lanes text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text; was baton.past; upto bigint;
BEGIN
 FOR name IN SELECT DISTINCT y FROM unnest(lanes) y WHERE NOT baton.is_key(y) LOOP
  SELECT * INTO was FROM baton.past p WHERE p.queue = of AND p.lane = name
   ORDER BY p.n DESC LIMIT 1;
  was.seq := coalesce(was.seq, 0);
-- A claim has the number of its first batch, also when that is gone.
  upto := coalesce(least((SELECT b.seq - 1 FROM baton.batch b WHERE b.queue = of
   AND (b.lane, b.seq) > (name, was.seq) AND b.lane <= name AND b.line
   ORDER BY b.lane, b.seq LIMIT 1), (SELECT c.head - 1 FROM baton.claim c WHERE c.queue = of
   AND (c.lane, c.head) > (name, was.seq) AND c.lane <= name
   ORDER BY c.lane, c.head LIMIT 1)), (SELECT last_value FROM baton.seq));
  CONTINUE WHEN upto <= was.seq;
  DELETE FROM baton.past p WHERE p.queue = of AND p.lane = name AND p.n = was.n;
  INSERT INTO baton.past(queue, lane, n, seq, at) VALUES (of, name, coalesce(was.n, 0) + 1, upto,
   baton.now_ms());
 END LOOP;
END $$;
CREATE OR REPLACE FUNCTION baton.on_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
 UPDATE baton.past p SET seq = NEW.seq - 1 WHERE p.queue = NEW.queue AND p.lane = NEW.lane
  AND p.seq >= NEW.seq AND p.n = (SELECT y.n FROM baton.past y WHERE y.queue = NEW.queue
   AND y.lane = NEW.lane ORDER BY y.n DESC LIMIT 1);
 RETURN NULL;
END $$;
-- Makes `head` right in these lanes, in which at most `entered` batches have entered. Of those with
-- a key, `asks`; and then the head of that key.
CREATE OR REPLACE FUNCTION baton.settle(of int, lanes text[], entered bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE asked text[]; keys text[] := ARRAY(SELECT x FROM unnest(lanes) x
 WHERE baton.is_key(x)); dead bigint := baton.walked();
BEGIN
 IF cardinality(keys) < cardinality(lanes) THEN
  WITH x AS MATERIALIZED (
   SELECT z.lane, coalesce((SELECT p.seq FROM baton.past p WHERE p.queue = of
     AND p.lane = z.lane ORDER BY p.n DESC LIMIT 1), 0) AS past
    FROM (SELECT DISTINCT y AS lane FROM unnest(lanes) y WHERE NOT baton.is_key(y)) z),
  l AS MATERIALIZED (
   SELECT x.lane, x.past, f.seq, f.head OR f.asks AS led, f.seq IS NOT NULL AND f.state <> 3
    AND NOT EXISTS (SELECT 1 FROM baton.batch h WHERE h.queue = of AND h.lane = x.lane
     AND h.holds)
-- Said so that only the index over lanes can be used, whatever the statistics are.
    AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = of
     AND (c.lane, c.head) > (x.lane, x.past) AND c.lane <= x.lane
     AND c.offered IS NOT TRUE) AS free
   FROM x LEFT JOIN LATERAL (SELECT b.seq, b.state, b.head, b.asks FROM baton.batch b
    WHERE b.queue = of AND (b.lane, b.seq) > (x.lane, x.past) AND b.lane <= x.lane AND b.line
    ORDER BY b.lane, b.seq LIMIT 1) f ON true),
  n AS MATERIALIZED (
   SELECT y.at, l.free AND y.seq = l.seq AS lead, y.guest IS NOT NULL AS asks FROM l
   CROSS JOIN LATERAL (SELECT b.ctid AS at, b.seq, b.head, b.guest, b.asks FROM baton.batch b
    WHERE b.queue = of AND (b.lane, b.seq) > (l.lane, l.past) AND b.lane <= l.lane AND b.line
    ORDER BY b.lane, b.seq LIMIT entered + 1) y
   WHERE l.seq IS NOT NULL AND NOT (l.free AND l.led)
    AND (y.head OR y.asks) <> (l.free AND y.seq = l.seq)),
  u AS (UPDATE baton.batch b
   SET head = b.ctid = ANY(ARRAY(SELECT n.at FROM n WHERE n.lead AND NOT n.asks)),
    asks = b.ctid = ANY(ARRAY(SELECT n.at FROM n WHERE n.lead AND n.asks)),
    pool = CASE WHEN (SELECT q.mode = 4 FROM baton.queue q WHERE q.id = of) THEN b.shard + 1
     ELSE 0 END
   WHERE b.ctid = ANY(ARRAY(SELECT n.at FROM n)) RETURNING b.guest)
  SELECT array_agg(DISTINCT x.line) INTO asked FROM u
   CROSS JOIN LATERAL unnest(baton.lines(u.guest)) x(line) WHERE u.guest IS NOT NULL;
  keys := keys || asked;
-- What this transaction has removed itself is walked over too, twice.
  IF baton.walked() - dead > 2 * entered + 8 * cardinality(lanes) THEN
   PERFORM baton.pass(of, lanes);
  END IF;
 END IF;
 IF cardinality(keys) > 0 THEN PERFORM baton.settle_keys(of, keys, entered); END IF;
END $$;
-- All keys of a queue, after its limit has changed: one look for each of them. That of others of
-- its class has changed as well, and they get a call of their own.
CREATE OR REPLACE FUNCTION baton.settle_limit(of int) RETURNS void LANGUAGE sql AS $$
 WITH RECURSIVE k AS (
  (SELECT b.lane FROM baton.batch b WHERE b.queue = of AND b.line AND b.lane >= chr(1)
   AND b.lane < chr(2) ORDER BY b.lane LIMIT 1)
  UNION ALL SELECT (SELECT b.lane FROM baton.batch b WHERE b.queue = of AND b.line
   AND b.lane > k.lane AND b.lane < chr(2) ORDER BY b.lane LIMIT 1)
  FROM k WHERE k.lane IS NOT NULL),
 g AS (
  (SELECT b.guest FROM baton.batch b WHERE b.queue = of AND b.asks ORDER BY b.guest LIMIT 1)
  UNION ALL SELECT (SELECT b.guest FROM baton.batch b WHERE b.queue = of AND b.asks
   AND b.guest > g.guest ORDER BY b.guest LIMIT 1) FROM g WHERE g.guest IS NOT NULL)
 SELECT baton.settle_own(of, array_agg(x.lane), 0) FROM (SELECT k.lane FROM k UNION
  SELECT unnest(baton.lines(g.guest)) FROM g) x WHERE x.lane IS NOT NULL HAVING count(*) > 0
$$;
-- The same after keys have begun, or ceased, to take turns.
CREATE OR REPLACE FUNCTION baton.settle_fair(of int) RETURNS void LANGUAGE sql AS $$
 DELETE FROM baton.pace p WHERE p.queue = of;
 UPDATE baton.batch b SET head = false, place = NULL WHERE b.queue = of AND b.head
  AND baton.is_key(b.lane);
 SELECT baton.settle_limit(of);
$$;
-- After the rate of a queue has changed, which had that window: what counted still counts. Whoever
-- calls it settles all keys then, since the row of a key may be with another queue of its class.
CREATE OR REPLACE FUNCTION baton.settle_rate(of int, was_ms bigint, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE own baton.queue; span bigint;
BEGIN
 SELECT * INTO own FROM baton.queue q WHERE q.id = of;
 span := least(baton.window_ms(own), was_ms);
 IF own.key_starts = 0 THEN
  DELETE FROM baton.rate r WHERE r.queue = of;
 ELSE
  DELETE FROM baton.rate r WHERE r.queue = of
   AND r.starts[cardinality(r.starts)] + span <= now_ms;
  UPDATE baton.rate r SET starts = x.starts,
   over = x.starts[cardinality(x.starts)] + baton.window_ms(own), until = CASE WHEN
    cardinality(x.starts) >= own.key_starts THEN x.starts[1] + baton.window_ms(own) END
   FROM (SELECT y.lane, y.list[greatest(1, cardinality(y.list) - own.key_starts + 1):] AS starts
    FROM (SELECT z.lane, ARRAY(SELECT least(s, now_ms) FROM unnest(z.starts) s
     WHERE s + span > now_ms ORDER BY s) AS list FROM baton.rate z WHERE z.queue = of) y) x
   WHERE r.queue = of AND r.lane = x.lane;
  PERFORM baton.untend(of, (SELECT min(r.until) FROM baton.rate r WHERE r.queue = of));
 END IF;
END $$;
-- A queue leaves its class, or joins one: its starts count for those whom it leaves, and not for
-- those whom it joins.
CREATE OR REPLACE FUNCTION baton.on_class() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE heir int := (SELECT min(m.id) FROM baton.queue m WHERE m.key_class = OLD.key_class
 AND m.key_class <> '' AND m.id <> NEW.id);
BEGIN
 IF heir IS NOT NULL THEN
  PERFORM baton.untend(heir, (SELECT min(r.until) FROM baton.rate r WHERE r.queue = NEW.id));
  UPDATE baton.rate r SET queue = heir WHERE r.queue = NEW.id;
 ELSIF EXISTS (SELECT 1 FROM baton.queue m WHERE m.key_class = NEW.key_class
   AND m.key_class <> '' AND m.id <> NEW.id) THEN
  DELETE FROM baton.rate r WHERE r.queue = NEW.id;
 END IF;
 RETURN NULL;
END $$;
