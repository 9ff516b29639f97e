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
