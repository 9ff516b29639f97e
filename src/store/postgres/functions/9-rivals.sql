-- Whether a batch of a key's line waits: it is ready, or its claim has expired.
CREATE OR REPLACE FUNCTION baton.waits(b baton.batch) RETURNS bool LANGUAGE sql STABLE AS $$
 SELECT b.state = 1 OR EXISTS (SELECT 1 FROM baton.claim o WHERE o.queue = b.queue
  AND o.lane = b.lane AND o.offered AND b.seq = ANY(o.seqs)) $$;
-- Whether somebody wants some of the claim cancelled.
CREATE OR REPLACE FUNCTION baton.stops(c baton.claim) RETURNS bool LANGUAGE sql STABLE AS $$
 SELECT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = ANY(c.seqs) AND b.cancel) $$;
-- A batch of a key has just become ready: it, or another one, gives way as its queue wants it. Of a
-- class, those in all of its queues count, and the other one may be in any of them.
CREATE OR REPLACE FUNCTION baton.rival_enter(of int, number bigint, now_ms bigint) RETURNS void
 LANGUAGE plpgsql AS $$
DECLARE q baton.queue; key text; holder bigint; holds bigint; waiting bigint; last bigint;
 gone bigint; other bigint; stopping bigint; was baton.batch; first bigint; all_of int[];
BEGIN
 SELECT * INTO q FROM baton.queue WHERE id = of;
 all_of := CASE WHEN q.key_class = '' THEN ARRAY[of] ELSE ARRAY(SELECT m.id FROM baton.queue m
  WHERE m.key_class = q.key_class AND m.key_class <> '') END;
 SELECT b.lane INTO key FROM baton.batch b WHERE b.seq = number;
 SELECT count(*), min(x.seq) INTO holds, holder FROM unnest(all_of) m(id) CROSS JOIN LATERAL (
  SELECT (SELECT min(s) FROM unnest(c.seqs) s) AS seq FROM baton.claim c WHERE c.queue = m.id
   AND c.lane = key AND NOT c.offered UNION ALL SELECT b.seq FROM baton.batch b
   WHERE b.queue = m.id AND b.lane = key AND b.holds) x;
 SELECT count(*), min(x.seq) INTO waiting, first FROM unnest(all_of) m(id)
  CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b WHERE b.queue = m.id
  AND b.lane BETWEEN key AND key AND b.line AND b.seq <> number AND baton.waits(b)
  ORDER BY b.lane, b.seq LIMIT q.key_limit + 1) x;
 SELECT max(x.seq) INTO last FROM unnest(all_of) m(id) CROSS JOIN LATERAL (SELECT b.seq
  FROM baton.batch b WHERE b.queue = m.id AND b.lane BETWEEN key AND key
  AND b.line AND b.seq <> number AND baton.waits(b) ORDER BY b.lane DESC, b.seq DESC LIMIT 1) x;
 IF q.on_conflict = 5 THEN
-- The oldest that has the key, or will, and was not asked to stop.
  SELECT count(*) INTO stopping FROM unnest(all_of) m(id) CROSS JOIN LATERAL (SELECT 1
   FROM baton.claim c WHERE c.queue = m.id AND c.lane = key AND NOT c.offered
   AND baton.stops(c)) x;
  IF holds - stopping + waiting < q.key_limit THEN RETURN; END IF;
  SELECT min(x.seq) INTO gone FROM unnest(all_of) m(id) CROSS JOIN LATERAL (
   SELECT (SELECT min(s) FROM unnest(c.seqs) s) AS seq FROM baton.claim c
    WHERE c.queue = m.id AND c.lane = key AND NOT baton.stops(c)
   UNION ALL SELECT b.seq FROM baton.batch b WHERE b.queue = m.id AND b.lane = key AND b.holds
   UNION ALL (SELECT b.seq FROM baton.batch b WHERE b.queue = m.id
    AND b.lane BETWEEN key AND key AND b.line AND b.seq <> number AND b.state = 1
    ORDER BY b.lane, b.seq LIMIT 1)) x;
  other := number;
  SELECT * INTO was FROM baton.batch b WHERE b.seq = gone;
  IF was.state = 4 THEN
   UPDATE baton.batch b SET cancel = true, rival = (SELECT coalesce(o.born, o.seq)
    FROM baton.batch o WHERE o.seq = number) FROM baton.claim c WHERE c.queue = was.queue
    AND c.lane = key AND gone = ANY(c.seqs) AND b.seq = ANY(c.seqs);
   RETURN;
  END IF;
  IF was.state = 3 THEN
   UPDATE baton.batch b SET state = 1, holds = false, blocks = false WHERE b.seq = gone;
   UPDATE baton.queue SET retrying = retrying - 1, ready = ready + 1 WHERE id = was.queue;
  END IF;
 ELSIF q.on_conflict = 2 AND holds + waiting >= q.key_limit THEN
  gone := number;
  other := coalesce(holder, first);
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
  ended_at = now_ms, until = now_ms + CASE WHEN y.keep > 0 THEN y.keep / 1000000
  ELSE 3600000 END, rival = (SELECT coalesce(o.born, o.seq) FROM baton.batch o
  WHERE o.seq = other) FROM baton.queue y WHERE b.seq = gone AND b.state = 1 AND y.id = b.queue
  RETURNING b.* INTO was;
 IF FOUND THEN
  UPDATE baton.queue SET ready = ready - 1, kept = kept + 1 WHERE id = was.queue;
 END IF;
END $$;
