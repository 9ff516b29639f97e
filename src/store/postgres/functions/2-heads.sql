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
