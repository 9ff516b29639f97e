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
   AND (q.key_limit, q.hold_on_retry, q.key_ttl, q.key_starts, q.key_window, q.key_waiting_max,
    q.on_conflict) <> (o.key_limit, o.hold_on_retry, o.key_ttl, o.key_starts, o.key_window,
    o.key_waiting_max, o.on_conflict)
  UNION ALL SELECT 'starts of a key are in two queues of its class', count(*)
   FROM baton.rate r JOIN baton.queue q ON q.id = r.queue AND q.key_class <> ''
   JOIN baton.queue o ON o.key_class = q.key_class AND o.id > q.id
   JOIN baton.rate x ON x.queue = o.id AND x.lane = r.lane
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
