-- All functions, views, triggers and rights. Whoever makes the tables, or brings them to a newer
-- version, runs this after the last step, so each of them is here once, and knows the tables of
-- the newest version only. A change of them takes a step, be it one that does nothing else.
--
-- What is here may be there already, as any earlier version has made it, and others may depend on
-- it: it is replaced, not dropped. So a view gets new columns at its end, and the arguments and
-- the result of a function stay; if they do not, the earlier one is dropped first.
DROP FUNCTION IF EXISTS baton.tend(int, bigint);
DROP FUNCTION IF EXISTS baton.check_guests(baton.queue);
DROP FUNCTION IF EXISTS baton.key_state(int, text);
DROP FUNCTION IF EXISTS baton.key_state(int, text, bool);
CREATE OR REPLACE FUNCTION baton.unpack(first bigint, bytes bytea)
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
-- Which batches the payloads of such a row are of, as `has` says it.
CREATE OR REPLACE FUNCTION baton.has_of(bytes bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE at int := 0; bits bigint := 0;
BEGIN
 WHILE at < length(bytes) LOOP
  bits := bits | (1::bigint << get_byte(bytes, at));
  at := at + 5 + ((get_byte(bytes, at + 1) << 24) | (get_byte(bytes, at + 2) << 16)
   | (get_byte(bytes, at + 3) << 8) | get_byte(bytes, at + 4));
 END LOOP;
 RETURN bits;
END $$;
-- The claims in chunks, as those in baton.claim are.
CREATE OR REPLACE VIEW baton.item AS SELECT h.head, h.fence,
 substring(c.tokens FROM (16 * h.at - 15)::int FOR 16) AS token, c.owner, c.queue,
 NULL::text AS lane, c.granter, c.claimed_at, c.expires_at, false AS offered,
 ARRAY[h.head] AS seqs, c.first, NULL::text AS guest
 FROM baton.chunk c CROSS JOIN LATERAL unnest(c.heads, c.fences) WITH ORDINALITY
 h(head, fence, at);
-- What stands in bulk and is not done, as batches are.
CREATE OR REPLACE VIEW baton.member AS
 SELECT x.seq, NULL::bigint AS born, b.queue, b.keys[x.place] AS lane,
 CASE WHEN x.fence IS NULL THEN 1 ELSE 4 END::smallint AS state, b.rank, b.flags, b.put_at,
 NULL::bigint AS due, NULL::text AS grp, NULL::bytea AS retry, 0 AS attempts,
 coalesce(x.fence, 0) AS fence, false AS cancel, false AS holds, false AS blocks,
 NULL::bytea AS error, NULL::bytea AS result, NULL::bigint AS ended_at, NULL::bigint AS until,
 x.payload, b.first, b.last, b.has, b.pool, NULL::bigint AS rival, NULL::bigint AS place,
 NULL::text AS guest, false AS keeps, false AS head
 FROM baton.bulk b CROSS JOIN LATERAL (SELECT m.seq FROM baton.mark m WHERE m.queue = b.queue
 AND m.pool = b.pool AND m.rank = b.rank ORDER BY m.seq DESC LIMIT 1) k
 CROSS JOIN LATERAL (SELECT u.seq, u.payload, u.place, y.fence
 FROM baton.unpack(b.first, b.payload) WITH ORDINALITY u(seq, payload, place)
 LEFT JOIN (SELECT z.head, z.fence FROM baton.item z WHERE z.first = b.first) y
 ON y.head = u.seq) x WHERE x.seq > k.seq OR x.fence IS NOT NULL;
-- What can no longer be claimed stays in the index over heads as long as somebody holds an old
-- snapshot. So it is written down from time to time up to which place there are none, of a pool
-- and a rank, and whoever makes an earlier one takes that back. The lock of the queue is held.
CREATE OR REPLACE FUNCTION baton.raise(of int, within int, prio int) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE was baton.low; lows bigint[]; upto bigint;
BEGIN
 SELECT * INTO was FROM baton.low l WHERE l.queue = of AND l.pool = within ORDER BY l.n DESC
  LIMIT 1;
 lows := coalesce(was.places, array_fill(0::bigint, ARRAY[10]));
 upto := coalesce((SELECT coalesce(b.place, b.seq * 2) - 1 FROM baton.batch b
  WHERE b.queue = of AND b.pool = within AND b.rank = prio::smallint AND b.head
  AND coalesce(b.place, b.seq * 2) > lows[prio + 1]
  ORDER BY coalesce(b.place, b.seq * 2), b.seq LIMIT 1), (SELECT last_value * 2 FROM baton.seq));
 DELETE FROM baton.low l WHERE l.queue = of AND l.pool = within AND l.n = was.n;
 lows[prio + 1] := upto;
 INSERT INTO baton.low(queue, pool, n, places) VALUES (of, within, coalesce(was.n, 0) + 1, lows);
END $$;
CREATE OR REPLACE FUNCTION baton.lower(of int, within int, prio int, head_at bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE was baton.low;
BEGIN
 SELECT * INTO was FROM baton.low l WHERE l.queue = of AND l.pool = within ORDER BY l.n DESC
  LIMIT 1;
 IF was.places[prio + 1] >= head_at THEN
  UPDATE baton.low l SET places[prio + 1] = head_at - 1 WHERE l.queue = of AND l.pool = within
   AND l.n = was.n;
 END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.on_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
 PERFORM baton.lower(NEW.queue, NEW.pool, NEW.rank, coalesce(NEW.place, NEW.seq * 2));
 RETURN NULL;
END $$;
-- Makes ordinary rows of these. The locks of their queues are held.
CREATE OR REPLACE FUNCTION baton.melt(firsts bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
 IF cardinality(firsts) = 0 THEN RETURN; END IF;
 FOR r IN WITH i AS (INSERT INTO baton.batch(seq, put_at, fence, queue, shard, pool, attempts,
   state, rank, flags, head, line, cancel, holds, blocks, lane, payload)
   SELECT m.seq, m.put_at, m.fence, m.queue, p.shard,
   CASE WHEN q.mode = 4 THEN p.shard + 1 ELSE 0 END, 0, m.state, m.rank, m.flags,
   m.state = 1, m.lane IS NOT NULL, false, false, false, m.lane, m.payload
   FROM baton.member m JOIN baton.queue q ON q.id = m.queue
   CROSS JOIN LATERAL (SELECT baton.shard(q.name, substr(m.lane, 2), m.seq, q.shards) AS shard) p
   WHERE m.first = ANY(firsts) RETURNING queue, pool, rank, seq, head)
  SELECT i.queue, i.pool, i.rank, min(i.seq) AS seq FROM i WHERE i.head GROUP BY 1, 2, 3 LOOP
  PERFORM baton.lower(r.queue, r.pool, r.rank, r.seq * 2);
 END LOOP;
 INSERT INTO baton.claim(head, fence, granter, claimed_at, expires_at, queue, offered, token,
  owner, lane, seqs) SELECT i.head, i.fence, i.granter, i.claimed_at, i.expires_at, i.queue,
  false, i.token, i.owner, (SELECT b.lane FROM baton.batch b WHERE b.seq = i.head), i.seqs
  FROM baton.item i WHERE i.first = ANY(firsts);
 DELETE FROM baton.chunk WHERE first = ANY(firsts);
 PERFORM baton.leave(b.queue, b.first, b.keys) FROM baton.bulk b WHERE b.first = ANY(firsts)
  AND b.keys IS NOT NULL;
 DELETE FROM baton.bulk WHERE first = ANY(firsts);
END $$;
-- Jobs with keys in rows of several. Nobody else is ready or claimed, or waits for another attempt,
-- that has the key of one of them: whoever adds such a row says baton.alone() first, and whoever
-- does anything to a line baton.thaw(). The lock of the queue is held.
--
-- Behind which number these rows are looked through for keys; those of the others are in
-- baton.lone.
CREATE OR REPLACE FUNCTION baton.young_from(of int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN coalesce((SELECT y.seq FROM baton.young y WHERE y.queue = of ORDER BY y.seq DESC LIMIT 1),
  0);
END $$;
-- Which of these keys one in such a row has, and in which rows they stand. Those that are done do
-- not count.
CREATE OR REPLACE FUNCTION baton.together(of int, lines text[], OUT hits text[],
 OUT firsts bigint[]) LANGUAGE plpgsql STABLE AS $$
DECLARE since bigint := baton.young_from(of);
BEGIN
 hits := ARRAY(SELECT k FROM baton.bulk b CROSS JOIN LATERAL unnest(b.keys) k WHERE b.queue = of
  AND b.keys IS NOT NULL AND b.first > since INTERSECT SELECT unnest(lines));
 IF cardinality(hits) > 0 THEN
  firsts := ARRAY(SELECT b.first FROM baton.bulk b WHERE b.queue = of AND b.keys IS NOT NULL
   AND b.first > since AND b.keys && hits);
 END IF;
 IF since > 0 THEN
  SELECT hits || array_agg(l.line::text), firsts || array_agg(l.first) INTO hits, firsts
   FROM baton.lone l WHERE l.queue = of AND l.line = ANY(lines);
 END IF;
 IF cardinality(hits) > 0 THEN
  SELECT array_agg(m.lane), array_agg(DISTINCT m.first) INTO hits, firsts FROM baton.member m
   WHERE m.first = ANY(firsts) AND m.lane = ANY(hits);
 ELSE
  hits := NULL;
  firsts := NULL;
 END IF;
END $$;
-- Jobs with these keys are about to be put into such rows, which have numbers from that one on.
-- When there are many, or some far behind, the keys of the older ones are written down.
CREATE OR REPLACE FUNCTION baton.alone(of int, lines text[], number bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE since bigint := baton.young_from(of); firsts bigint[]; upto bigint; old int;
BEGIN
 IF EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = of AND b.lane = ANY(lines) AND b.line)
  OR EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = of AND b.lane = ANY(lines) AND b.holds)
  OR EXISTS (SELECT 1 FROM baton.together(of, lines) t WHERE t.firsts IS NOT NULL)
  OR EXISTS (SELECT 1 FROM baton.queue q WHERE q.id = of AND (q.guests OR q.key_class <> ''))
  THEN
  RAISE EXCEPTION 'somebody has one of the keys' USING ERRCODE = 'BT006';
 END IF;
 firsts := ARRAY(SELECT b.first FROM baton.bulk b WHERE b.queue = of AND b.keys IS NOT NULL
  AND b.first > since ORDER BY b.first);
 old := CASE WHEN cardinality(firsts) > 32 THEN cardinality(firsts) - 16
  WHEN firsts[1] < number - 2048 THEN cardinality(firsts) ELSE 0 END;
 IF old > 0 THEN
  INSERT INTO baton.lone(queue, line, first) SELECT of, k, b.first FROM baton.bulk b
   CROSS JOIN LATERAL unnest(b.keys) k WHERE b.first = ANY(firsts[:old]) AND k IS NOT NULL
   ORDER BY k, b.first;
 END IF;
 upto := coalesce(firsts[old + 1], number) - 1;
 IF old = 0 AND upto - since < 256 THEN RETURN; END IF;
 DELETE FROM baton.young y WHERE y.queue = of AND y.seq = since;
 INSERT INTO baton.young(queue, seq) VALUES (of, upto);
END $$;
-- A row with these keys goes.
CREATE OR REPLACE FUNCTION baton.leave(of int, number bigint, lines text[]) RETURNS void
 LANGUAGE plpgsql AS $$
BEGIN
 IF number <= baton.young_from(of) THEN
  DELETE FROM baton.lone l WHERE l.queue = of AND l.line = ANY(lines) AND l.first = number;
 END IF;
END $$;
-- Makes ordinary rows of those in which one of these keys is. Which of the keys that were.
CREATE OR REPLACE FUNCTION baton.thaw(of int, lines text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE t record;
BEGIN
 SELECT * INTO t FROM baton.together(of, lines);
 IF t.firsts IS NOT NULL THEN PERFORM baton.melt(t.firsts); END IF;
 RETURN t.hits;
END $$;
-- The row in which a batch stands.
CREATE OR REPLACE FUNCTION baton.bulk_of(id bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
 SELECT b.first FROM baton.bulk b WHERE b.first >= id - id % 64 AND b.first <= id
 AND (b.has >> (id - b.first)::int) & 1 = 1 $$;
-- Numbers in a row that begins where the caller thinks it does.
CREATE OR REPLACE FUNCTION baton.draw(first bigint, amount bigint) RETURNS void
 LANGUAGE plpgsql AS $$
BEGIN
 FOR i IN 0 .. amount - 1 LOOP
  IF nextval('baton.seq') <> first + i THEN
   RAISE EXCEPTION 'the numbers are not in a row' USING ERRCODE = 'BT001';
  END IF;
 END LOOP;
END $$;
-- For whoever wrote by what he remembered of a queue, and it is not so any more.
CREATE OR REPLACE FUNCTION baton.stale() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
 RAISE EXCEPTION 'the queue has changed' USING ERRCODE = 'BT005';
END $$;
CREATE OR REPLACE FUNCTION baton.is_key(line text) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
 SELECT left(line, 1) = chr(1) $$;
-- The lines of keys whose names stand one after the other, as those of a guest do.
CREATE OR REPLACE FUNCTION baton.lines(guest text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
 SELECT ARRAY(SELECT chr(1) || x FROM unnest(string_to_array(substr(guest, 2), chr(1))) x) $$;
CREATE OR REPLACE FUNCTION baton.is_several(guest text) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
 SELECT strpos(substr(guest, 2), chr(1)) > 0 $$;
-- What is written of a batch with several keys is written of each of its keys.
CREATE OR REPLACE FUNCTION baton.on_several() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := baton.lines(OLD.guest); gone bool := TG_OP = 'DELETE';
BEGIN
 IF OLD.asks AND (gone OR NOT NEW.asks OR NEW.seq <> OLD.seq) THEN
  DELETE FROM baton.ask a WHERE a.queue = OLD.queue AND a.line = ANY(names) AND a.seq = OLD.seq;
 END IF;
 IF OLD.keeps AND (gone OR NOT NEW.keeps OR NEW.seq <> OLD.seq) THEN
  DELETE FROM baton.hold h WHERE h.queue = OLD.queue AND h.line = ANY(names)
   AND h.seq = OLD.seq AND h.fence = 0;
 END IF;
 IF gone THEN RETURN NULL; END IF;
 IF NEW.asks AND (NOT OLD.asks OR NEW.seq <> OLD.seq) THEN
  INSERT INTO baton.ask(queue, line, seq, head) SELECT NEW.queue, x, NEW.seq, NEW.head
   FROM unnest(names) x;
 ELSIF NEW.asks AND NEW.head <> OLD.head THEN
  UPDATE baton.ask a SET head = NEW.head WHERE a.queue = NEW.queue AND a.line = ANY(names)
   AND a.seq = NEW.seq;
 END IF;
 IF NEW.keeps AND (NOT OLD.keeps OR NEW.seq <> OLD.seq) THEN
  INSERT INTO baton.hold(queue, line, seq, fence) SELECT NEW.queue, x, NEW.seq, 0
   FROM unnest(names) x;
 END IF;
 RETURN NULL;
END $$;
-- And of a claim.
CREATE OR REPLACE FUNCTION baton.on_held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
 IF TG_OP = 'DELETE' THEN
  DELETE FROM baton.hold h WHERE h.queue = OLD.queue AND h.line = ANY(baton.lines(OLD.guest))
   AND h.seq = OLD.head AND h.fence = OLD.fence;
 ELSE
  INSERT INTO baton.hold(queue, line, seq, fence) SELECT NEW.queue, x, NEW.head, NEW.fence
   FROM unnest(baton.lines(NEW.guest)) x;
 END IF;
 RETURN NULL;
END $$;
-- The batches with several keys that have something to do with one: those that hold it, or keep it,
-- the first that asks for it, also if those are gone whose claims are over, and who comes after
-- these in their lanes.
CREATE OR REPLACE FUNCTION baton.several_of(of int, key text) RETURNS SETOF bigint
 LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN QUERY SELECT unnest(c.seqs) FROM baton.hold h JOIN baton.claim c ON c.head = h.seq
   AND c.fence = h.fence WHERE h.queue = of AND h.line = key
  UNION ALL SELECT f.seq FROM baton.hold h JOIN baton.claim c ON c.head = h.seq
   AND c.fence = h.fence AND c.offered CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b
    WHERE b.queue = of AND b.lane BETWEEN c.lane AND c.lane AND b.line AND b.state <> 4
    ORDER BY b.lane, b.seq LIMIT 1) f WHERE h.queue = of AND h.line = key
  UNION ALL SELECT h.seq FROM baton.hold h WHERE h.queue = of AND h.line = key AND h.fence = 0
  UNION ALL (SELECT a.seq FROM baton.ask a WHERE a.queue = of AND a.line BETWEEN key AND key
   ORDER BY a.line, a.seq LIMIT 1)
  UNION ALL (SELECT a.seq FROM baton.ask a CROSS JOIN LATERAL (SELECT b.state
    FROM baton.batch b WHERE b.seq = a.seq OFFSET 0) b WHERE a.queue = of
    AND a.line BETWEEN key AND key AND b.state = 1 ORDER BY a.line, a.seq LIMIT 1)
  UNION ALL SELECT unnest(c.seqs) FROM baton.several_claims_of(of, key) c;
END $$;
-- The claims of those.
CREATE OR REPLACE FUNCTION baton.several_claims_of(of int, key text) RETURNS SETOF baton.claim
 LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN QUERY SELECT c.* FROM baton.hold h JOIN baton.claim c ON c.head = h.seq
   AND c.fence = h.fence WHERE h.queue = of AND h.line = key
  UNION ALL SELECT c.* FROM (SELECT a.seq FROM baton.ask a WHERE a.queue = of
   AND a.line BETWEEN key AND key ORDER BY a.line, a.seq LIMIT 1) a
   CROSS JOIN LATERAL (SELECT b.lane, b.state FROM baton.batch b WHERE b.seq = a.seq OFFSET 0) b
   JOIN baton.claim c ON c.queue = of AND c.lane = b.lane WHERE b.state = 4;
END $$;
-- The last starts of each of several keys: how many they are, and their times; NULL: none has any.
CREATE OR REPLACE FUNCTION baton.starts_of(of int, guest text) RETURNS bigint[]
 LANGUAGE plpgsql STABLE AS $$
DECLARE name text; one bigint[]; list bigint[] := '{}'; any_has bool := false;
BEGIN
 FOREACH name IN ARRAY baton.lines(guest) LOOP
  one := coalesce((SELECT r.starts FROM baton.rate r WHERE r.queue = of AND r.lane = name), '{}');
  any_has := any_has OR cardinality(one) > 0;
  list := list || cardinality(one)::bigint || one;
 END LOOP;
 RETURN CASE WHEN any_has THEN list END;
END $$;
-- The window of a rate in milliseconds, as the library has it.
CREATE OR REPLACE FUNCTION baton.window_ms(q baton.queue) RETURNS bigint LANGUAGE sql IMMUTABLE AS
 $$ SELECT (q.key_window + 999999) / 1000000 $$;
-- Queues of one class have their keys in common. All that is done to one of them is done under the
-- lock of the class, too, which comes after those of queues.
CREATE OR REPLACE FUNCTION baton.class_stripe(class text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
 SELECT 1088 + (get_byte(sha256(convert_to(class, 'UTF8')), 0) & 63) $$;
-- The highest fence of all their claims, and the names of the others.
CREATE OR REPLACE FUNCTION baton.class_top(class text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN (SELECT max(coalesce((SELECT y.top FROM baton.tally y WHERE y.queue = m.id
   ORDER BY y.n DESC LIMIT 1), m.top)) FROM baton.queue m WHERE m.key_class = class
  AND m.key_class <> '');
END $$;
CREATE OR REPLACE FUNCTION baton.class_peers(of int, class text) RETURNS text
 LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN (SELECT string_agg(m.name, '/') FROM baton.queue m WHERE m.key_class = class
  AND m.key_class <> '' AND m.id <> of);
END $$;
-- How often others of them hold a key.
CREATE OR REPLACE FUNCTION baton.class_holds(of int, class text, key text) RETURNS bigint
 LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN (SELECT coalesce(sum(x.n), 0) FROM baton.queue m CROSS JOIN LATERAL (
   SELECT count(*) AS n FROM baton.claim c WHERE c.queue = m.id AND c.lane = key AND NOT c.offered
   UNION ALL SELECT count(*) FROM baton.batch b WHERE b.queue = m.id AND b.lane = key AND b.holds
   UNION ALL SELECT count(*) FROM baton.claim c WHERE m.guests AND c.queue = m.id
    AND c.guest = key AND NOT c.offered
   UNION ALL SELECT count(*) FROM baton.batch b WHERE m.guests AND b.queue = m.id
    AND b.guest = key AND b.keeps
   UNION ALL SELECT count(*) FROM baton.hold h WHERE m.guests AND h.queue = m.id AND h.line = key
    AND (h.fence = 0 OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.head = h.seq
     AND c.fence = h.fence AND NOT c.offered OFFSET 0))) x
  WHERE m.key_class = class AND m.key_class <> '' AND m.id <> of);
END $$;
-- Whether the claim holds keys.
CREATE OR REPLACE FUNCTION baton.is_shared(c baton.claim) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
 SELECT coalesce(left(c.lane, 1) = chr(1), false) OR c.guest IS NOT NULL $$;
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
  OR NOT EXISTS (SELECT 1 FROM baton.rate r WHERE r.queue = of AND r.lane = key
   AND coalesce(r.until, 0) > 0) THEN q.key_limit - c.live - k.kept ELSE 0 END
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
-- The same after the rate of a queue has changed, which had that window: what counted still counts.
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
 PERFORM baton.settle_limit(of);
END $$;
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
-- Whoever has their shards may be somebody else, and sleep.
  IF own.mode = 4 THEN
   PERFORM baton.touch(own.id);
   PERFORM baton.ring('');
  END IF;
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
-- So many more wait for a key, or, below 0, no more.
CREATE OR REPLACE FUNCTION baton.wait_more(of int, more bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 UPDATE baton.tally t SET waiting = t.waiting + more WHERE t.queue = of AND t.n = (
  SELECT y.n FROM baton.tally y WHERE y.queue = of ORDER BY y.n DESC LIMIT 1);
 IF NOT FOUND THEN
  UPDATE baton.queue q SET waiting = q.waiting + more WHERE q.id = of;
 END IF;
END $$;
-- What a batch adds to how many wait for a key: those in the line of one that are ready, or whose
-- claim has expired (which that claim counts), and those of a lane that asks for one; without the
-- heads.
CREATE OR REPLACE FUNCTION baton.waiting_of(lane text, line bool, state int, head bool, asks bool)
 RETURNS int LANGUAGE sql IMMUTABLE AS $$
 SELECT CASE WHEN left(lane, 1) = chr(1) THEN (line AND state = 1)::int - head::int
  WHEN asks THEN 1 - head::int ELSE 0 END $$;
CREATE OR REPLACE FUNCTION baton.on_waiting() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
 IF TG_OP = 'INSERT' THEN
  FOR r IN SELECT x.queue, sum(baton.waiting_of(x.lane, x.line, x.state, x.head, x.asks)) AS n
   FROM fresh x GROUP BY x.queue LOOP
   IF r.n <> 0 THEN PERFORM baton.wait_more(r.queue, r.n); END IF;
  END LOOP;
 ELSIF TG_OP = 'DELETE' THEN
  FOR r IN SELECT x.queue, -sum(baton.waiting_of(x.lane, x.line, x.state, x.head, x.asks)) AS n
   FROM gone x GROUP BY x.queue LOOP
   IF r.n <> 0 THEN PERFORM baton.wait_more(r.queue, r.n); END IF;
  END LOOP;
 ELSE
  FOR r IN SELECT y.queue, sum(y.n) AS n FROM (SELECT x.queue, baton.waiting_of(x.lane, x.line,
    x.state, x.head, x.asks) AS n FROM fresh x UNION ALL SELECT x.queue,
    -baton.waiting_of(x.lane, x.line, x.state, x.head, x.asks) FROM gone x) y
   GROUP BY y.queue LOOP
   IF r.n <> 0 THEN PERFORM baton.wait_more(r.queue, r.n); END IF;
  END LOOP;
 END IF;
 RETURN NULL;
END $$;
-- Of a claim whose work others may take, before or now.
CREATE OR REPLACE FUNCTION baton.on_offered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
 PERFORM baton.wait_more(OLD.queue, CASE WHEN TG_OP = 'UPDATE' AND NEW.offered
   THEN cardinality(NEW.seqs) ELSE 0 END - CASE WHEN OLD.offered THEN cardinality(OLD.seqs)
   ELSE 0 END);
 RETURN NULL;
END $$;
-- A batch that has keys beside its lane, or several, becomes ready, or is so no more.
CREATE OR REPLACE FUNCTION baton.on_wish() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE b baton.batch := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
BEGIN
 IF (SELECT q.key_waiting_max FROM baton.queue q WHERE q.id = b.queue) = 0 THEN
  RETURN NULL;
 END IF;
 IF TG_OP <> 'INSERT' AND b.state = 1 THEN
  DELETE FROM baton.wish w WHERE w.queue = b.queue AND w.line = ANY(baton.lines(b.guest))
   AND w.seq = b.seq;
 END IF;
 IF TG_OP <> 'DELETE' AND NEW.state = 1 THEN
  INSERT INTO baton.wish(queue, line, seq) SELECT NEW.queue, x, NEW.seq
   FROM unnest(baton.lines(NEW.guest)) x;
 END IF;
 RETURN NULL;
END $$;
-- How many of a key may wait is bounded now, or no more.
CREATE OR REPLACE FUNCTION baton.on_bound() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
 DELETE FROM baton.wish w WHERE w.queue = NEW.id;
 IF NEW.key_waiting_max > 0 THEN
  INSERT INTO baton.wish(queue, line, seq) SELECT b.queue, x, b.seq FROM baton.batch b
   CROSS JOIN LATERAL unnest(baton.lines(b.guest)) x WHERE b.queue = NEW.id
   AND b.guest IS NOT NULL AND b.state = 1;
 END IF;
 RETURN NULL;
END $$;
-- How many wait in the lines of a key in all shards, as far as `most`.
CREATE OR REPLACE FUNCTION baton.crowd_of_sites(of int, key text, most bigint) RETURNS bigint
 LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN (SELECT count(*) FROM (SELECT 1 FROM baton.batch b WHERE b.queue = of
   AND b.lane > key || chr(3) AND b.lane < key || chr(4) AND b.line AND b.state = 1
   ORDER BY b.lane, b.seq LIMIT most) x);
END $$;
-- How many of a key wait, in its line and elsewhere, as far as `most`.
CREATE OR REPLACE FUNCTION baton.crowd(of int, key text, most bigint) RETURNS bigint
 LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN baton.crowd_of_sites(of, key, most) + (SELECT count(*) FROM (SELECT 1 FROM baton.batch b WHERE b.queue = of
   AND b.lane BETWEEN key AND key AND b.line AND baton.waits(b) ORDER BY b.lane, b.seq
   LIMIT most) x) + (SELECT count(*) FROM (SELECT 1 FROM baton.wish w WHERE w.queue = of
   AND w.line BETWEEN key AND key ORDER BY w.line, w.seq LIMIT most) x);
END $$;
-- Whether a batch of a key's line waits: it is ready, or its claim has expired.
CREATE OR REPLACE FUNCTION baton.waits(b baton.batch) RETURNS bool LANGUAGE sql STABLE AS $$
 SELECT b.state = 1 OR EXISTS (SELECT 1 FROM baton.claim o WHERE o.queue = b.queue
  AND o.lane = b.lane AND o.offered AND b.seq = ANY(o.seqs)) $$;
-- Whether somebody wants some of the claim cancelled.
CREATE OR REPLACE FUNCTION baton.stops(c baton.claim) RETURNS bool LANGUAGE sql STABLE AS $$
 SELECT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = ANY(c.seqs) AND b.cancel) $$;
-- A batch of a key has just become ready: it, or another one, gives way as its queue wants it.
CREATE OR REPLACE FUNCTION baton.rival_enter(of int, number bigint, now_ms bigint) RETURNS void
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
  AND b.lane BETWEEN key AND key AND b.line AND b.seq <> number AND baton.waits(b)
  ORDER BY b.lane, b.seq LIMIT q.key_limit + 1) x;
 SELECT b.seq INTO last FROM baton.batch b WHERE b.queue = of AND b.lane BETWEEN key AND key
  AND b.line AND b.seq <> number AND baton.waits(b) ORDER BY b.lane DESC, b.seq DESC LIMIT 1;
 IF q.on_conflict = 5 THEN
-- The oldest that has the key, or will, and was not asked to stop.
  SELECT count(*) INTO stopping FROM baton.claim c WHERE c.queue = of AND c.lane = key
   AND NOT c.offered AND baton.stops(c);
  IF holds - stopping + waiting < q.key_limit THEN RETURN; END IF;
  SELECT min(x.seq) INTO gone FROM (
   SELECT (SELECT min(s) FROM unnest(c.seqs) s) AS seq FROM baton.claim c
    WHERE c.queue = of AND c.lane = key AND NOT baton.stops(c)
   UNION ALL SELECT b.seq FROM baton.batch b WHERE b.queue = of AND b.lane = key AND b.holds
   UNION ALL (SELECT b.seq FROM baton.batch b WHERE b.queue = of AND b.lane BETWEEN key AND key
    AND b.line AND b.seq <> number AND b.state = 1 ORDER BY b.lane, b.seq LIMIT 1)) x;
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
   SELECT b.seq INTO other FROM baton.batch b WHERE b.queue = of AND b.lane BETWEEN key AND key
    AND b.line AND b.seq <> number AND baton.waits(b) ORDER BY b.lane, b.seq LIMIT 1;
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
-- Before that nothing is due in the queue, and no claim is over. What is gone stays in the indexes
-- as long as somebody holds an old snapshot, and is not walked over from here. Whoever writes an
-- earlier time sets it back: the library with the counts, and baton.untend().
CREATE OR REPLACE FUNCTION baton.since(of int) RETURNS bigint LANGUAGE sql STABLE AS $$
 SELECT coalesce((SELECT t.tended FROM baton.tally t WHERE t.queue = of ORDER BY t.n DESC
  LIMIT 1), 0) $$;
CREATE OR REPLACE FUNCTION baton.untend(of int, at bigint) RETURNS void LANGUAGE sql AS $$
 UPDATE baton.tally t SET tended = at WHERE t.queue = of AND t.tended > at
  AND t.n = (SELECT y.n FROM baton.tally y WHERE y.queue = of ORDER BY y.n DESC LIMIT 1) $$;
-- Makes what is due ready, and offers the work of claims that have expired: the first thousand
-- of each. False: there may be more.
CREATE FUNCTION baton.tend(of int, now_ms bigint) RETURNS bool
 LANGUAGE plpgsql AS $$
DECLARE touched text[]; moved bigint; n2 bigint; n3 bigint; r record; firsts bigint[];
 since bigint := baton.since(of); whole bool; own baton.queue; back bigint;
BEGIN
 firsts := ARRAY(SELECT c.first FROM baton.chunk c WHERE c.queue = of
  AND c.expires_at >= since AND c.expires_at <= now_ms AND c.expires_at < 9223372036854775807
  ORDER BY c.expires_at LIMIT 100);
 whole := cardinality(firsts) < 100;
 PERFORM baton.melt(ARRAY(SELECT DISTINCT unnest(firsts)));
 SELECT * INTO own FROM baton.queue q WHERE q.id = of;
 IF own.on_conflict > 1 OR own.key_fair > 1 THEN
-- One after the other: each may give way to those before it, or they to it; one that keeps its key
-- may be gone when its turn comes.
  touched := NULL;
  moved := 0;
  n2 := 0;
  n3 := 0;
  FOR r IN SELECT b.seq, b.state, b.lane, b.holds FROM baton.batch b WHERE b.queue = of
    AND b.state IN (2, 3) AND b.due >= since AND b.due <= now_ms
    ORDER BY b.due, b.seq LIMIT 1000 LOOP
   IF own.key_fair > 1 AND baton.is_key(r.lane) AND NOT r.holds THEN
    PERFORM baton.pace_enter(of, r.lane, r.seq);
   END IF;
   UPDATE baton.batch b SET state = 1, blocks = false, holds = false, head = b.lane IS NULL,
    line = b.lane IS NOT NULL, pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
    FROM baton.queue q WHERE b.seq = r.seq AND q.id = of AND b.state IN (2, 3);
   CONTINUE WHEN NOT FOUND;
   moved := moved + 1;
   n2 := n2 + (r.state = 2)::int;
   n3 := n3 + (r.state = 3)::int;
   IF r.lane IS NOT NULL THEN touched := array_append(touched, r.lane::text); END IF;
   IF own.on_conflict > 1 AND baton.is_key(r.lane) AND NOT r.holds THEN
    PERFORM baton.rival_enter(of, r.seq, now_ms);
   END IF;
  END LOOP;
 ELSE
  WITH d AS MATERIALIZED (SELECT seq, state, CASE WHEN keeps THEN guest END AS kept
    FROM baton.batch WHERE queue = of
    AND state IN (2, 3) AND due >= since AND due <= now_ms ORDER BY due, seq LIMIT 1000),
   u AS (UPDATE baton.batch b SET state = 1, blocks = false, holds = false, keeps = false,
    head = b.lane IS NULL,
    line = b.lane IS NOT NULL, pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
    FROM d, baton.queue q WHERE b.seq = d.seq AND q.id = of RETURNING b.lane, d.state, d.kept)
  SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL)
   || (SELECT array_agg(DISTINCT x.line) FROM u AS y
    CROSS JOIN LATERAL unnest(baton.lines(y.kept)) x(line)), count(*),
   count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3)
   INTO touched, moved, n2, n3 FROM u;
 END IF;
 whole := whole AND moved < 1000;
 IF moved > 0 THEN
  UPDATE baton.queue SET ready = ready + moved, delayed = delayed - n2,
   retrying = retrying - n3 WHERE id = of;
  PERFORM baton.settle(of, touched, moved);
 END IF;
 IF own.key_starts > 0 THEN
  whole := baton.rate_see(own, since, now_ms) AND whole;
 END IF;
-- Those of keys of a class are ended by the library.
 WITH x AS MATERIALIZED ((SELECT o.head, o.fence FROM baton.claim o WHERE o.queue = of
   AND NOT o.offered AND o.expires_at >= since AND o.expires_at <= now_ms
   AND (own.key_class = '' OR NOT baton.is_shared(o)) ORDER BY o.expires_at LIMIT 1000)
   UNION ALL (SELECT head, fence FROM baton.claim WHERE queue = of AND offered
   AND expires_at > now_ms LIMIT 1000)),
  u AS (UPDATE baton.claim c SET offered = NOT c.offered FROM x
   WHERE c.head = x.head AND c.fence = x.fence RETURNING c.lane, c.guest, c.seqs, c.offered,
   c.expires_at),
  h AS (UPDATE baton.batch b SET head = u.offered,
   pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END
   FROM u, baton.queue q WHERE u.lane IS NULL AND b.seq = u.seqs[1] AND q.id = of
   RETURNING 1)
 SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL)
  || (SELECT array_agg(DISTINCT x.line) FROM u AS y
   CROSS JOIN LATERAL unnest(baton.lines(y.guest)) x(line)), count(*),
  min(expires_at) FILTER (WHERE NOT offered) INTO touched, moved, back FROM u;
-- The clock was set back: what is offered no more is due once again.
 IF back IS NOT NULL THEN
  PERFORM baton.untend(of, back);
 END IF;
 IF touched IS NOT NULL THEN
  PERFORM baton.settle(of, touched, 0);
 END IF;
 IF own.key_class <> '' THEN
  whole := whole AND NOT EXISTS (SELECT 1 FROM baton.claim o WHERE o.queue = of
   AND NOT o.offered AND o.expires_at >= since AND o.expires_at <= now_ms);
 END IF;
 RETURN whole AND moved < 1000;
END $$;
-- Makes what is ready in a queue whose mode was changed be where those look for it who claim now:
-- some of it each time.
CREATE OR REPLACE FUNCTION baton.gather(of int) RETURNS void LANGUAGE plpgsql AS $$
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
  PERFORM baton.rate_see(own, 0, now_ms);
-- Nobody claims now who would see what is there.
  PERFORM baton.touch(own.id);
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
-- What does not fit together: a sentence, and how many of them. Each rule reads what there is
-- once, and looks for the rest by an index that leaves no choice, or not at all: whole tables are
-- compared by EXCEPT and GROUP BY, which sort, and not by joins.
-- To compile so long a statement takes longer than to run it.
CREATE OR REPLACE FUNCTION baton.faults() RETURNS TABLE(sentence text, amount bigint)
 LANGUAGE sql STABLE SET jit = off AS $$
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
   OR (SELECT o.seq FROM baton.batch o WHERE o.queue = b.queue AND o.lane BETWEEN b.lane
    AND b.lane AND o.line ORDER BY o.lane, o.seq LIMIT 1) < b.seq
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.holds)
   OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue AND c.lane = b.lane
    AND NOT c.offered))
  UNION ALL SELECT 'lanes cannot be claimed from, though they should', count(*) FROM (
   SELECT DISTINCT ON (queue, lane) * FROM baton.batch WHERE line
   ORDER BY queue, lane, seq) b WHERE NOT (b.head OR b.asks) AND b.state <> 3
   AND NOT baton.is_key(b.lane)
   AND NOT EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue
    AND o.lane = b.lane AND o.holds OFFSET 0)
   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue
    AND (c.lane, c.head) >= (b.lane, 0) AND c.lane <= b.lane AND c.offered IS NOT TRUE OFFSET 0)
  UNION ALL SELECT 'keys can be claimed, or cannot, though it should be otherwise', count(*)
   FROM (SELECT queue, lane, array_agg(seq) FILTER (WHERE head) AS heads FROM (
     SELECT queue, lane, seq, head FROM baton.batch WHERE baton.is_key(lane)
     UNION ALL SELECT queue, unnest(baton.lines(guest)), seq, head FROM baton.batch
      WHERE guest IS NOT NULL) x
    GROUP BY queue, lane) l
   CROSS JOIN LATERAL baton.key_state(l.queue, l.lane) k
   WHERE l.heads IS DISTINCT FROM CASE WHEN k.free THEN ARRAY[k.seq] END
  UNION ALL SELECT 'several keys are asked for by who does not, or not by who does', count(*)
   FROM (SELECT queue, line, seq, head FROM baton.ask) a FULL JOIN (SELECT b.queue, x.line, b.seq,
    b.head FROM baton.batch b CROSS JOIN LATERAL unnest(baton.lines(b.guest)) x(line)
    WHERE b.asks AND baton.is_several(b.guest)) b USING (queue, line, seq, head)
   WHERE a.seq IS NULL OR b.seq IS NULL
  UNION ALL SELECT 'several keys are held by who does not, or not by who does', count(*)
   FROM (SELECT queue, line, seq, fence FROM baton.hold) h FULL JOIN (SELECT c.queue, x.line,
     c.head AS seq, c.fence FROM baton.claim c CROSS JOIN LATERAL unnest(baton.lines(c.guest))
     x(line) WHERE baton.is_several(c.guest)
    UNION ALL SELECT b.queue, x.line, b.seq, 0 FROM baton.batch b
     CROSS JOIN LATERAL unnest(baton.lines(b.guest)) x(line) WHERE b.keeps
     AND baton.is_several(b.guest)) b USING (queue, line, seq, fence)
   WHERE h.seq IS NULL OR b.seq IS NULL
  UNION ALL SELECT 'lanes ask for a key that they do not begin with', count(*) FROM baton.batch b
   WHERE b.asks AND (NOT b.line OR b.state = 3 OR b.guest IS NULL
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.line AND o.seq < b.seq)
   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane
    AND o.holds)
   OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue AND c.lane = b.lane
    AND NOT c.offered))
  UNION ALL SELECT 'heads have a key that they do not ask for', count(*) FROM baton.batch
   WHERE head AND guest IS NOT NULL AND NOT asks
  UNION ALL SELECT 'keys are kept by guests that do not wait', count(*) FROM baton.batch
   WHERE keeps AND (guest IS NULL OR state <> 3)
  UNION ALL SELECT 'batches have a lane and a key, and their queue does not know', count(*)
   FROM baton.batch b JOIN baton.queue q ON q.id = b.queue
   WHERE b.guest IS NOT NULL AND NOT (q.guests AND b.lane IS NOT NULL) AND b.state < 6
  UNION ALL SELECT 'heads are not in their place among others', count(*)
   FROM baton.batch b JOIN baton.queue q ON q.id = b.queue LEFT JOIN baton.pace p
   ON p.queue = b.queue AND p.lane = b.lane WHERE b.head AND b.place IS DISTINCT FROM
   CASE WHEN q.key_fair = 2 AND p.turn > b.seq THEN p.turn * 2 + 1 END
  UNION ALL SELECT 'queues of a class have another policy of keys than others of it', count(*)
   FROM baton.queue q JOIN baton.queue o ON o.key_class = q.key_class WHERE q.key_class <> ''
   AND (q.key_limit, q.hold_on_retry, q.key_ttl) <> (o.key_limit, o.hold_on_retry, o.key_ttl)
  UNION ALL SELECT 'turns are kept for keys that nobody has', count(*) FROM baton.pace p
   WHERE baton.key_is_idle(p.queue, p.lane)
  UNION ALL SELECT 'keys have another number of starts than they may', count(*)
   FROM baton.rate r JOIN baton.queue q ON q.id = r.queue
   WHERE cardinality(r.starts) NOT BETWEEN 1 AND q.key_starts
   OR r.until IS NOT NULL AND cardinality(r.starts) < q.key_starts
  UNION ALL SELECT 'keys are kept by what does not wait', count(*) FROM baton.batch
   WHERE baton.is_key(lane) AND holds AND NOT (state = 3 AND blocks)
  UNION ALL SELECT 'batches are claimed without a claim', count(*) FROM (
   SELECT queue, seq FROM baton.batch WHERE state = 4
   EXCEPT SELECT queue, unnest(seqs) FROM baton.claim) x
  UNION ALL SELECT 'claims have a batch that is not claimed, or that another claim has', count(*)
   FROM (SELECT queue, lane, guest, unnest(seqs) FROM baton.claim
   EXCEPT ALL SELECT queue, lane, guest, seq FROM baton.batch WHERE state = 4) x
  UNION ALL SELECT 'claims have no batch', count(*) FROM baton.claim c
   WHERE cardinality(c.seqs) = 0
  UNION ALL SELECT 'queues have another number of batches than they count',
   count(DISTINCT y.queue) FROM (SELECT x.queue FROM (
    SELECT queue, state, 1 AS n FROM baton.batch
    UNION ALL SELECT b.queue, 1, CASE WHEN k.seq < b.first THEN b.n WHEN k.seq < b.last THEN (
     SELECT count(*) FROM baton.member m WHERE m.first = b.first AND m.state = 1) ELSE 0 END
     FROM baton.bulk b CROSS JOIN LATERAL (SELECT m.seq FROM baton.mark m
     WHERE m.queue = b.queue AND m.pool = b.pool AND m.rank = b.rank
     ORDER BY m.seq DESC LIMIT 1) k
    UNION ALL SELECT queue, 4, cardinality(heads) FROM baton.chunk
    UNION ALL SELECT q.id, c.state, -c.n FROM baton.queue q LEFT JOIN LATERAL (SELECT *
     FROM baton.tally y WHERE y.queue = q.id ORDER BY y.n DESC LIMIT 1) t ON true
     CROSS JOIN LATERAL (VALUES (1, q.ready + coalesce(t.ready, 0)),
      (2, q.delayed + coalesce(t.delayed, 0)), (3, q.retrying + coalesce(t.retrying, 0)),
      (4, q.claimed + coalesce(t.claimed, 0)), (5, q.dead + coalesce(t.dead, 0)),
      (6, q.kept + coalesce(t.kept, 0))) c(state, n)) x
   GROUP BY x.queue, x.state HAVING sum(x.n) <> 0) y
  UNION ALL SELECT 'queues have another number that wait for a key than they count', count(*)
   FROM (SELECT x.queue FROM (SELECT b.queue, baton.waiting_of(b.lane, b.line, b.state, b.head,
     b.asks) AS n FROM baton.batch b
    UNION ALL SELECT c.queue, cardinality(c.seqs) FROM baton.claim c WHERE c.offered
     AND baton.is_key(c.lane)
    UNION ALL SELECT q.id, -q.waiting - coalesce((SELECT t.waiting FROM baton.tally t
     WHERE t.queue = q.id ORDER BY t.n DESC LIMIT 1), 0) FROM baton.queue q) x
   GROUP BY x.queue HAVING sum(x.n) <> 0) y
  UNION ALL SELECT 'keys are wanted by what does not have them, or is not ready', count(*)
   FROM (SELECT w.queue, w.line, w.seq FROM baton.wish w EXCEPT SELECT b.queue, x, b.seq
    FROM baton.batch b JOIN baton.queue q ON q.id = b.queue
    CROSS JOIN LATERAL unnest(baton.lines(b.guest)) x WHERE b.guest IS NOT NULL AND b.state = 1
    AND q.key_waiting_max > 0) w
  UNION ALL SELECT 'batches are ready and have keys of which that is not known', count(*)
   FROM (SELECT b.queue, x, b.seq
    FROM baton.batch b JOIN baton.queue q ON q.id = b.queue
    CROSS JOIN LATERAL unnest(baton.lines(b.guest)) x WHERE b.guest IS NOT NULL AND b.state = 1
    AND q.key_waiting_max > 0 EXCEPT SELECT w.queue, w.line, w.seq FROM baton.wish w) w
  UNION ALL SELECT 'work is due, or claims are over, before the time from which on that is looked '
   'for', count(*) FROM (SELECT b.queue, b.due AS at FROM baton.batch b WHERE b.state IN (2, 3)
    UNION ALL SELECT c.queue, c.expires_at FROM baton.claim c WHERE NOT c.offered
    UNION ALL SELECT r.queue, r.until FROM baton.rate r
    UNION ALL SELECT c.queue, c.expires_at FROM baton.chunk c) x
   WHERE x.at < baton.since(x.queue)
  UNION ALL SELECT 'heads are before the place from which on they are looked for', count(*)
   FROM baton.batch b WHERE b.head AND coalesce(b.place, b.seq * 2) <= (
   SELECT l.places[b.rank + 1] FROM baton.low l WHERE l.queue = b.queue AND l.pool = b.pool
   ORDER BY l.n DESC LIMIT 1)
  UNION ALL SELECT 'work of lanes is before the number from which on it is looked for', count(*)
   FROM (SELECT b.queue, b.lane, b.seq FROM baton.batch b WHERE b.line
    UNION ALL SELECT c.queue, c.lane, c.head FROM baton.claim c) x WHERE x.seq <= (
   SELECT p.seq FROM baton.past p WHERE p.queue = x.queue AND p.lane = x.lane
   ORDER BY p.n DESC LIMIT 1)
  UNION ALL SELECT 'rows of several batches have other batches than they say', count(*)
   FROM baton.bulk b WHERE b.has <> baton.has_of(b.payload)
   OR b.n <> length(replace(b.has::bit(64)::text, '0', ''))
   OR b.last <> b.first + 64 - position('1' IN b.has::bit(64)::text)
  UNION ALL SELECT 'rows of several batches have none that is not done', count(*)
   FROM baton.bulk b WHERE b.last <= (SELECT m.seq FROM baton.mark m WHERE m.queue = b.queue
   AND m.pool = b.pool AND m.rank = b.rank ORDER BY m.seq DESC LIMIT 1)
   AND NOT EXISTS (SELECT 1 FROM baton.chunk c WHERE c.first = b.first OFFSET 0)
  UNION ALL SELECT 'rows of several batches have no mark', count(*) FROM baton.bulk b
   WHERE NOT EXISTS (SELECT 1 FROM baton.mark m WHERE m.queue = b.queue AND m.pool = b.pool
   AND m.rank = b.rank OFFSET 0)
  UNION ALL SELECT 'claims are on rows of several batches that do not have them', count(*)
   FROM baton.item i WHERE baton.bulk_of(i.head) IS DISTINCT FROM i.first
  UNION ALL SELECT 'batches stand in two rows', count(*) FROM baton.batch b
   CROSS JOIN LATERAL (SELECT 1 FROM baton.bulk x WHERE x.first >= b.seq - b.seq % 64
   AND x.first <= b.seq AND (x.has >> (b.seq - x.first)::int) & 1 = 1 OFFSET 0) y
  UNION ALL SELECT 'batches have been claimed, and are before the mark', count(*)
   FROM baton.item i CROSS JOIN LATERAL (SELECT * FROM baton.bulk x WHERE x.first = i.first
   OFFSET 0) b WHERE i.head > (SELECT max(m.seq)
   FROM baton.mark m WHERE m.queue = b.queue AND m.pool = b.pool AND m.rank = b.rank)
  UNION ALL SELECT 'batches that stand in a row with others have a key that somebody else has',
   count(*) FROM (SELECT m.queue, m.lane, count(*) AS n FROM baton.member m
    WHERE m.lane IS NOT NULL GROUP BY m.queue, m.lane) m WHERE m.n > 1
   OR EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = m.queue AND b.lane = m.lane
    AND (b.line OR b.holds))
  UNION ALL SELECT 'rows of several batches have keys that are none, or not one for each',
   count(*) FROM baton.bulk b WHERE cardinality(b.keys) <> b.n
   OR NOT EXISTS (SELECT 1 FROM unnest(b.keys) k WHERE k IS NOT NULL) AND b.keys IS NOT NULL
   OR EXISTS (SELECT 1 FROM unnest(b.keys) k WHERE NOT baton.is_key(k))
  UNION ALL SELECT 'rows of several batches have keys that are not found', count(*)
   FROM baton.bulk b WHERE b.first <= baton.young_from(b.queue) AND EXISTS (SELECT 1
   FROM unnest(b.keys) k WHERE k IS NOT NULL AND NOT EXISTS (SELECT 1 FROM baton.lone l
    WHERE l.queue = b.queue AND l.line = k AND l.first = b.first))
  UNION ALL SELECT 'keys are remembered of rows that are gone', count(*) FROM baton.lone l
   WHERE NOT EXISTS (SELECT 1 FROM baton.bulk b WHERE b.first = l.first AND b.queue = l.queue
   AND l.line = ANY(b.keys))
  UNION ALL SELECT 'rows of several batches have keys, which those of their queue cannot',
   count(*) FROM baton.bulk b JOIN baton.queue q ON q.id = b.queue WHERE b.keys IS NOT NULL
   AND (q.on_conflict > 1 OR q.key_waiting_max > 0 OR q.key_fair > 1 OR q.key_starts > 0
   OR q.key_ttl > 0 OR q.guests OR q.key_class <> '')
  ) x(sentence, amount) WHERE amount > 0
$$;
-- For users' own transactions: what they ask for is staged, and done when they commit. What runs as
-- the owner of the tables looks for types among those of its caller last, so that it runs nothing
-- of his.
CREATE OR REPLACE FUNCTION baton.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
 SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
CREATE OR REPLACE FUNCTION baton.stripe(name text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
 SELECT 64 + (((get_byte(h, 0) << 8) | get_byte(h, 1)) & 1023)
 FROM (SELECT sha256(convert_to(name, 'UTF8')) AS h) x $$;
CREATE OR REPLACE FUNCTION baton.shard(queue text, lane text, id bigint, shards int) RETURNS int
 LANGUAGE sql IMMUTABLE AS $$
 SELECT (CASE WHEN lane IS NULL THEN id ELSE ('x' || encode(substring(sha256(
  convert_to(queue, 'UTF8') || '\x00'::bytea || convert_to(lane, 'UTF8'))
  FROM 1 FOR 7), 'hex'))::bit(56)::bigint END % shards)::int $$;
CREATE OR REPLACE FUNCTION baton.check_name(what text, name text) RETURNS void
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
CREATE OR REPLACE FUNCTION baton.packed(word text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
 SELECT int8send(octet_length(word)) || convert_to(word, 'UTF8') $$;
CREATE OR REPLACE FUNCTION baton.find(number bigint) RETURNS baton.batch LANGUAGE sql STABLE AS $$
 (SELECT * FROM baton.batch WHERE seq = number AND born IS NULL) UNION ALL
 (SELECT * FROM baton.batch WHERE born = number) LIMIT 1 $$;
-- Source keys: what is remembered of them is the same as in C. Who puts one in his own
-- transaction locks it until the end, so that two of them get the same answer: the first 256 of
-- them, since the server has only so many locks for all. Of the others the second to commit fails.
CREATE OR REPLACE FUNCTION baton.known(key_hash bytea, content_hash bytea) RETURNS bigint
 LANGUAGE plpgsql AS $$
DECLARE known_id bigint; known_content bytea; locked int := coalesce(nullif(
 current_setting('baton.locked', true), '')::int, 0);
BEGIN
 IF locked < 256 THEN
  PERFORM set_config('baton.locked', (locked + 1)::text, true);
  PERFORM pg_advisory_xact_lock(1650553968, ('x' || encode(substring(key_hash FROM 1
   FOR 4), 'hex'))::bit(32)::int);
 END IF;
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
-- Work with both a lane and a key, or several, cannot be in every queue.
CREATE OR REPLACE FUNCTION baton.check_guests(q baton.queue, several bool) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE so text := CASE WHEN q.mode = 3 THEN 'the mode is lane'
 WHEN q.on_conflict > 1 THEN 'on_conflict is not wait'
 WHEN q.key_scope < 3 THEN 'key_scope is ' || (ARRAY['process', 'host'])[q.key_scope]
 WHEN q.key_fair > 1 THEN 'key_fair is on' END;
BEGIN
 IF so IS NOT NULL THEN
  RAISE EXCEPTION '% are given, which cannot be in a queue where %, as in %: give one of them, '
   'or use another queue', CASE WHEN several THEN 'several keys' ELSE 'both a lane and a key' END,
   so, quote_literal(q.name) USING ERRCODE = '22023';
 END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.put(queue text, payload bytea, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE one text; q baton.queue; number bigint; flags int := 0; wait interval; word text; due_ms
 bigint; source_key text := options->>'source'; key_hash bytea; content_hash bytea;
 key text := options->>'key'; keys text[] := ARRAY[key]; guest text; line text;
BEGIN
 PERFORM baton.check_name('the queue', queue);
 IF lane IS NOT NULL THEN PERFORM baton.check_name('the lane', lane); END IF;
 IF options ? 'keys' THEN
  IF key IS NOT NULL THEN
   RAISE EXCEPTION 'both a key and a list of keys are given: only one is allowed'
    USING ERRCODE = '22023';
  END IF;
  IF jsonb_typeof(options->'keys') <> 'array' OR EXISTS (SELECT 1
    FROM jsonb_array_elements(options->'keys') x WHERE jsonb_typeof(x) <> 'string') THEN
   RAISE EXCEPTION 'keys is %: an array of strings is allowed', options->'keys'
    USING ERRCODE = '22023';
  END IF;
  IF jsonb_array_length(options->'keys') > 8 THEN
   RAISE EXCEPTION 'the batch has % keys: at most 8 are allowed',
    jsonb_array_length(options->'keys') USING ERRCODE = '22023';
  END IF;
  keys := ARRAY(SELECT DISTINCT x COLLATE "C" FROM jsonb_array_elements_text(options->'keys') x
   ORDER BY 1);
 END IF;
 FOREACH word IN ARRAY array_remove(keys, NULL) LOOP
  PERFORM baton.check_name('the key', word);
 END LOOP;
 key := array_to_string(nullif(array_remove(keys, NULL), '{}'), chr(1));
 FOR word IN SELECT jsonb_object_keys(options) LOOP
  IF word NOT IN ('priority', 'delay', 'class', 'delivery', 'slot', 'group',
   'source', 'key', 'keys') THEN
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
 IF options->>'group' IS NOT NULL THEN
  PERFORM baton.check_name('the group', options->>'group');
  IF flags & 4 = 0 THEN
   RAISE EXCEPTION 'a group is given, but the job joins no others' USING ERRCODE = '22023';
  END IF;
 END IF;
 IF flags & 5 = 5 THEN
  RAISE EXCEPTION 'a command joins no others: it is claimed alone' USING ERRCODE = '22023';
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
   || coalesce((SELECT string_agg(baton.packed(x.k), ''::bytea ORDER BY x.at)
    FROM unnest(keys) WITH ORDINALITY x(k, at)), ''));
  number := baton.known(key_hash, content_hash);
  IF number IS NOT NULL THEN RETURN number; END IF;
 END IF;
-- Of few queues the counts matter; and little is in that table, so the planner reads all of it.
 IF q.waiting_max > 0 THEN
  q.ready := q.ready + coalesce((SELECT t.ready + t.delayed + t.retrying FROM baton.tally t
   WHERE t.queue = q.id ORDER BY t.n DESC LIMIT 1), 0);
 END IF;
 IF q.waiting_max > 0 AND q.ready + q.delayed + q.retrying >= q.waiting_max THEN
  RAISE EXCEPTION
 'queue % has % jobs waiting, and its waiting_max is %: put again when '
   'some are done', quote_literal(queue), q.ready + q.delayed + q.retrying,
 q.waiting_max
   USING ERRCODE = '54000';
 END IF;
 IF key IS NOT NULL AND (lane IS NOT NULL OR cardinality(keys) > 1) THEN
  PERFORM baton.check_guests(q, cardinality(keys) > 1);
  guest := chr(1) || key;
 END IF;
 IF q.key_waiting_max > 0 AND key IS NOT NULL AND due_ms IS NULL THEN
  FOREACH one IN ARRAY baton.lines(chr(1) || key) LOOP
   IF baton.crowd(q.id, one, q.key_waiting_max) >= q.key_waiting_max THEN
    RAISE EXCEPTION 'key % of queue % has as many jobs waiting as its key_waiting_max allows, '
     '%: put again when some are done', quote_literal(substr(one, 2)), quote_literal(queue),
     q.key_waiting_max USING ERRCODE = '54000';
   END IF;
  END LOOP;
 END IF;
 number := nextval('baton.seq');
 line := CASE WHEN lane IS NOT NULL THEN lane WHEN guest IS NOT NULL THEN chr(2) || number
  ELSE chr(1) || key END;
 INSERT INTO baton.staged(id, xid, what, queue, lane, rank, flags, due, grp, payload,
  key, content, guest) VALUES (number, pg_current_xact_id(), 'put', queue,
  line, 9 - coalesce((options->>'priority')::int, 0), flags, due_ms,
  options->>'group', payload, key_hash, content_hash, guest);
 RETURN number;
END $$;
CREATE OR REPLACE FUNCTION baton.put(queue text, payload text, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, convert_to(payload, 'UTF8'), lane, options) $$;
CREATE OR REPLACE FUNCTION baton.put(queue text, payload jsonb, lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, convert_to(payload::text, 'UTF8'), lane, options) $$;
CREATE OR REPLACE FUNCTION baton.put_many(queue text, payloads bytea[], lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;
CREATE OR REPLACE FUNCTION baton.put_many(queue text, payloads text[], lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;
CREATE OR REPLACE FUNCTION baton.put_many(queue text, payloads jsonb[], lane text DEFAULT NULL,
 options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$
 SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;
-- True: there is such a job; it is removed, or its holder told, when the user commits.
CREATE OR REPLACE FUNCTION baton.cancel(id bigint) RETURNS bool
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
-- Ends a claim when the user commits. If it is lost by then, the commit fails.
CREATE OR REPLACE FUNCTION baton.complete(claim text, token text) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE c record;
BEGIN
 IF claim !~ '^[0-9]{1,18}-[0-9]{1,18}$' OR token !~ '^[0-9a-f]{32}$' THEN
  RAISE EXCEPTION 'this is no claim, or no token' USING ERRCODE = '22023';
 END IF;
 SELECT * INTO c FROM (SELECT x.head, x.fence, x.token, x.queue FROM baton.claim x
   UNION ALL SELECT x.head, x.fence, x.token, x.queue FROM baton.item x
   WHERE x.first = baton.bulk_of(split_part(claim, '-', 1)::bigint)) x
  WHERE x.head = split_part(claim, '-', 1)::bigint
  AND x.fence = split_part(claim, '-', 2)::bigint
-- How long it takes to compare these says nothing about the token.
  AND sha256(x.token) = sha256(decode(complete.token, 'hex'));
 IF c.head IS NULL THEN
  RAISE EXCEPTION 'claim % is not held any more', claim USING ERRCODE = 'BT002';
 END IF;
 INSERT INTO baton.staged(id, xid, what, queue, head, fence, token)
  SELECT c.head, pg_current_xact_id(), 'complete', q.name, c.head, c.fence, c.token
  FROM baton.queue q WHERE q.id = c.queue;
END $$;
-- A renewal leaves the key of a lease's row alone, and so does not wait for who is admitted;
-- whoever gives it another fence locks all of it first.
CREATE OR REPLACE FUNCTION baton.admit(subject text, fence bigint) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
 PERFORM 1 FROM baton.lease l WHERE l.subject = admit.subject AND l.fence = admit.fence
  AND l.held FOR KEY SHARE;
 IF NOT FOUND THEN
  RAISE EXCEPTION '% is not held under fence %', quote_literal(subject), fence
   USING ERRCODE = 'BT002';
 END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.guard(subjects text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
 IF (SELECT count(*) FROM (SELECT 1 FROM baton.lease WHERE subject = ANY(subjects)
   FOR UPDATE SKIP LOCKED) x) < cardinality(subjects) THEN
  RAISE EXCEPTION 'somebody was admitted under the fence before'
   USING ERRCODE = 'BT004';
 END IF;
END $$;
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
 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
CREATE OR REPLACE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue,
 CASE WHEN left(b.lane, 1) IN (chr(1), chr(2)) THEN NULL ELSE b.lane END AS lane,
 CASE WHEN b.state = 6 AND b.rival IS NOT NULL THEN 'skipped' ELSE
  (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] END AS state,
 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,
 CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,
 convert_from(b.error, 'UTF8') AS error, b.payload,
 split_part(substr(CASE WHEN baton.is_key(b.lane) THEN split_part(b.lane, chr(3), 1)
  ELSE b.guest END, 2), chr(1), 1) AS key,
 CASE WHEN b.state = 6 THEN b.rival END AS skipped_for,
 string_to_array(substr(CASE WHEN baton.is_key(b.lane) THEN split_part(b.lane, chr(3), 1)
  ELSE b.guest END, 2), chr(1)) AS keys
 FROM (SELECT seq, born, queue, lane, state, rank, attempts, put_at, due, error, payload,
 rival, guest FROM baton.batch UNION ALL SELECT seq, born, queue, lane, state, rank, attempts,
 put_at, due, error, payload, rival, guest FROM baton.member) b
 JOIN baton.queue q ON q.id = b.queue;
DO $$ BEGIN
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'waiting') THEN
  CREATE TRIGGER waiting AFTER UPDATE ON baton.batch REFERENCING OLD TABLE AS gone
   NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION baton.on_waiting();
  CREATE TRIGGER waiting_new AFTER INSERT ON baton.batch REFERENCING NEW TABLE AS fresh
   FOR EACH STATEMENT EXECUTE FUNCTION baton.on_waiting();
  CREATE TRIGGER waiting_gone AFTER DELETE ON baton.batch REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION baton.on_waiting();
  CREATE TRIGGER wish AFTER UPDATE ON baton.batch FOR EACH ROW WHEN (NEW.guest IS NOT NULL
   AND ((NEW.state = 1) <> (OLD.state = 1) OR NEW.seq <> OLD.seq))
   EXECUTE FUNCTION baton.on_wish();
  CREATE TRIGGER wish_new AFTER INSERT ON baton.batch FOR EACH ROW
   WHEN (NEW.guest IS NOT NULL AND NEW.state = 1) EXECUTE FUNCTION baton.on_wish();
  CREATE TRIGGER wish_gone AFTER DELETE ON baton.batch FOR EACH ROW
   WHEN (OLD.guest IS NOT NULL AND OLD.state = 1) EXECUTE FUNCTION baton.on_wish();
  CREATE TRIGGER bound AFTER UPDATE ON baton.queue FOR EACH ROW
   WHEN ((NEW.key_waiting_max > 0) <> (OLD.key_waiting_max > 0))
   EXECUTE FUNCTION baton.on_bound();
  CREATE TRIGGER offered AFTER UPDATE ON baton.claim FOR EACH ROW WHEN (left(NEW.lane, 1) = chr(1)
   AND (NEW.offered OR OLD.offered)) EXECUTE FUNCTION baton.on_offered();
  CREATE TRIGGER offered_gone AFTER DELETE ON baton.claim FOR EACH ROW
   WHEN (left(OLD.lane, 1) = chr(1) AND OLD.offered) EXECUTE FUNCTION baton.on_offered();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'several') THEN
  CREATE TRIGGER several AFTER UPDATE ON baton.batch FOR EACH ROW
   WHEN (strpos(substr(NEW.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_several();
  CREATE TRIGGER several_gone AFTER DELETE ON baton.batch FOR EACH ROW
   WHEN (strpos(substr(OLD.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_several();
  CREATE TRIGGER several AFTER INSERT ON baton.claim FOR EACH ROW
   WHEN (strpos(substr(NEW.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_held();
  CREATE TRIGGER several_gone AFTER DELETE ON baton.claim FOR EACH ROW
   WHEN (strpos(substr(OLD.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_held();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'line') THEN
  CREATE TRIGGER line AFTER UPDATE ON baton.batch FOR EACH ROW WHEN (NEW.line AND NOT OLD.line)
   EXECUTE FUNCTION baton.on_line();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.staged'::regclass
   AND tgname = 'staged') THEN
  CREATE CONSTRAINT TRIGGER staged AFTER INSERT ON baton.staged
   DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION baton.on_commit();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'head') THEN
  CREATE TRIGGER head AFTER UPDATE ON baton.batch FOR EACH ROW WHEN (NEW.head AND (NOT OLD.head
   OR NEW.pool <> OLD.pool OR coalesce(NEW.place, NEW.seq * 2) < coalesce(OLD.place,
   OLD.seq * 2))) EXECUTE FUNCTION baton.on_head();
  CREATE TRIGGER placed AFTER INSERT ON baton.batch FOR EACH ROW WHEN (NEW.head
   AND NEW.place IS NOT NULL) EXECUTE FUNCTION baton.on_head();
 END IF;
END $$;
-- Who may what. Roles belong to a whole server, so they may be there already.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;
DO $$ DECLARE r text; BEGIN
 FOREACH r IN ARRAY ARRAY['baton_put', 'baton_runner', 'baton_operator'] LOOP
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN
   BEGIN EXECUTE format('CREATE ROLE %I NOLOGIN', r);
   EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
   END;
  END IF;
 END LOOP;
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT USAGE ON SCHEMA baton TO baton_put, baton_runner, baton_operator;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;
  GRANT EXECUTE ON FUNCTION baton.put(text, bytea, text, jsonb),
   baton.put(text, text, text, jsonb), baton.put(text, jsonb, text, jsonb),
   baton.put_many(text, bytea[], text, jsonb), baton.put_many(text, text[], text, jsonb),
   baton.put_many(text, jsonb[], text, jsonb) TO baton_put;
 END IF;
END $$;
