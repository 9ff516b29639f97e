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
-- The starts of a key whose queue counts them. Of a class there is one row for all of its queues, in
-- one of them.
CREATE OR REPLACE FUNCTION baton.rate_of(of int, key text) RETURNS SETOF baton.rate
 LANGUAGE plpgsql STABLE AS $$
DECLARE class text := (SELECT q.key_class FROM baton.queue q WHERE q.id = of
 AND q.key_starts > 0);
BEGIN
 IF class = '' THEN
  RETURN QUERY SELECT r.* FROM baton.rate r WHERE r.queue = of AND r.lane = key;
 ELSIF class IS NOT NULL THEN
  RETURN QUERY SELECT r.* FROM baton.queue m CROSS JOIN LATERAL (SELECT * FROM baton.rate x
   WHERE x.queue = m.id AND x.lane = key OFFSET 0) r WHERE m.key_class = class
   AND m.key_class <> '';
 END IF;
END $$;
-- The last starts of each of several keys: how many they are, and their times; NULL: none has any.
CREATE OR REPLACE FUNCTION baton.starts_of(of int, guest text) RETURNS bigint[]
 LANGUAGE plpgsql STABLE AS $$
DECLARE name text; one bigint[]; list bigint[] := '{}'; any_has bool := false;
BEGIN
 FOREACH name IN ARRAY baton.lines(guest) LOOP
  one := coalesce((SELECT r.starts FROM baton.rate_of(of, name) r), '{}');
  any_has := any_has OR cardinality(one) > 0;
  list := list || cardinality(one)::bigint || one;
 END LOOP;
 RETURN CASE WHEN any_has THEN list END;
END $$;
-- The window of a rate in milliseconds, as the library has it.
CREATE OR REPLACE FUNCTION baton.window_ms(q baton.queue) RETURNS bigint LANGUAGE sql IMMUTABLE AS
 $$ SELECT (q.key_window + 999999) / 1000000 $$;
