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
-- Only who had some has to be looked through for them.
 IF NEW.key_waiting_max > 0 AND NEW.guests THEN
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
 RETURN baton.crowd_of_sites(of, key, most) + (SELECT count(*) FROM (SELECT 1
   FROM baton.batch b WHERE b.queue = of AND b.lane BETWEEN key AND key AND b.line
   AND baton.waits(b) ORDER BY b.lane, b.seq LIMIT most) x)
  + (SELECT count(*) FROM (SELECT 1 FROM baton.wish w WHERE w.queue = of
   AND w.line BETWEEN key AND key ORDER BY w.line, w.seq LIMIT most) x);
END $$;
-- The same in other queues of a class than these.
CREATE OR REPLACE FUNCTION baton.class_crowd(class text, but int[], key text, most bigint)
 RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
 RETURN (SELECT coalesce(sum(baton.crowd(m.id, key, most)), 0) FROM baton.queue m
  WHERE m.key_class = class AND m.key_class <> '' AND m.id <> ALL(but));
END $$;
