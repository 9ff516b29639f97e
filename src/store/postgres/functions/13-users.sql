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
   IF (baton.crowd(q.id, one, q.key_waiting_max) + CASE WHEN q.key_class = '' THEN 0
     ELSE baton.class_crowd(q.key_class, ARRAY[q.id], one, q.key_waiting_max) END)
     >= q.key_waiting_max THEN
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
