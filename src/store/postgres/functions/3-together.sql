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
--
-- The young rows are read in the order of their index, and not by a bitmap: as soon as nothing was
-- alive when the statistics were made, the planner would take one of all that is dead in the queue.
CREATE OR REPLACE FUNCTION baton.together(of int, lines text[], OUT hits text[],
 OUT firsts bigint[]) LANGUAGE plpgsql STABLE SET enable_bitmapscan = off AS $$
DECLARE y baton.young; since bigint;
BEGIN
 SELECT * INTO y FROM baton.young x WHERE x.queue = of ORDER BY x.seq DESC, x.n DESC LIMIT 1;
 since := coalesce(y.seq, 0);
 hits := ARRAY(SELECT k FROM (SELECT b.keys FROM baton.bulk b WHERE b.queue = of
   AND b.keys IS NOT NULL AND b.first > since ORDER BY b.first OFFSET 0) b
  CROSS JOIN LATERAL unnest(b.keys) k INTERSECT SELECT unnest(lines));
 IF cardinality(hits) > 0 THEN
  firsts := ARRAY(SELECT b.first FROM (SELECT b.first, b.keys FROM baton.bulk b
   WHERE b.queue = of AND b.keys IS NOT NULL AND b.first > since ORDER BY b.first OFFSET 0) b
   WHERE b.keys && hits);
 END IF;
 IF y.lone > 0 THEN
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
 LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
DECLARE y baton.young; since bigint; firsts bigint[]; upto bigint; old int; more bigint := 0;
BEGIN
 SELECT * INTO y FROM baton.young x WHERE x.queue = of ORDER BY x.seq DESC, x.n DESC LIMIT 1;
 since := coalesce(y.seq, 0);
 firsts := ARRAY(SELECT b.first FROM baton.bulk b WHERE b.queue = of AND b.keys IS NOT NULL
  AND b.first > since ORDER BY b.first);
 IF EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = of AND b.lane = ANY(lines) AND b.line)
  OR EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = of AND b.lane = ANY(lines) AND b.holds)
  OR ((cardinality(firsts) > 0 OR y.lone > 0)
   AND EXISTS (SELECT 1 FROM baton.together(of, lines) t WHERE t.firsts IS NOT NULL))
  OR EXISTS (SELECT 1 FROM baton.queue q WHERE q.id = of AND (q.guests OR q.key_class <> ''))
  THEN
  RAISE EXCEPTION 'somebody has one of the keys' USING ERRCODE = 'BT006';
 END IF;
 old := CASE WHEN cardinality(firsts) > 32 THEN cardinality(firsts) - 16
  WHEN firsts[1] < number - 2048 THEN cardinality(firsts) ELSE 0 END;
 IF old > 0 THEN
  INSERT INTO baton.lone(queue, line, first) SELECT of, k, b.first FROM baton.bulk b
   CROSS JOIN LATERAL unnest(b.keys) k WHERE b.first = ANY(firsts[:old]) AND k IS NOT NULL
   ORDER BY k, b.first;
  GET DIAGNOSTICS more = ROW_COUNT;
 END IF;
 upto := coalesce(firsts[old + 1], number) - 1;
 IF old = 0 AND upto - since < 256 THEN RETURN; END IF;
 DELETE FROM baton.young x WHERE x.queue = of AND x.seq = y.seq AND x.n = y.n;
 INSERT INTO baton.young(queue, seq, n, lone) VALUES (of, upto, 0, coalesce(y.lone, 0) + more);
END $$;
-- A row with these keys goes.
CREATE OR REPLACE FUNCTION baton.leave(of int, number bigint, lines text[]) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE y baton.young; gone bigint;
BEGIN
 SELECT * INTO y FROM baton.young x WHERE x.queue = of ORDER BY x.seq DESC, x.n DESC LIMIT 1;
 IF y.lone > 0 AND number <= y.seq THEN
  DELETE FROM baton.lone l WHERE l.queue = of AND l.line = ANY(lines) AND l.first = number;
  GET DIAGNOSTICS gone = ROW_COUNT;
  DELETE FROM baton.young x WHERE x.queue = of AND x.seq = y.seq AND x.n = y.n;
  INSERT INTO baton.young(queue, seq, n, lone) VALUES (of, y.seq, y.n + 1, y.lone - gone);
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
