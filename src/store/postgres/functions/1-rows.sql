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
