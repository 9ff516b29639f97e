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
