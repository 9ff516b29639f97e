/* The tables of a store, and how those of an earlier version become these. */
#include "store/postgres/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/store.h>

#include "base/fail.h"

#define NEVER "9223372036854775807"

/* Each step leads from the version before it to the next. Those that are there never change. */
static const char *const steps[] = {
	"CREATE SCHEMA baton;\n"
	/* What there is one of. */
	"CREATE TABLE baton.state(\n"
	" one smallint PRIMARY KEY CHECK (one = 1), version int NOT NULL,\n"
	" name bytea NOT NULL, made bigint NOT NULL, runner bigint NOT NULL,\n"
	" place text NOT NULL, swept bigint NOT NULL DEFAULT 0,\n"
	" rung bigint NOT NULL DEFAULT 0);\n"
	"CREATE SEQUENCE baton.seq CACHE 1;\n"
	"CREATE TABLE baton.queue(\n"
	" id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
	" name text COLLATE \"C\" NOT NULL UNIQUE,\n"
	" stripe int NOT NULL, mode int NOT NULL, shards int NOT NULL, paused bool NOT NULL,\n"
	" payload_max bigint NOT NULL, waiting_max bigint NOT NULL, attempts bigint NOT NULL,\n"
	" backoff int NOT NULL, base bigint NOT NULL, cap bigint NOT NULL,\n"
	" lane_attempts bigint NOT NULL, lane_backoff int NOT NULL, lane_base bigint NOT NULL,\n"
	" lane_cap bigint NOT NULL, on_retry int NOT NULL, on_dead int NOT NULL,\n"
	" dedupe bigint NOT NULL, keep bigint NOT NULL, ready bigint NOT NULL,\n"
	" delayed bigint NOT NULL, retrying bigint NOT NULL, claimed bigint NOT NULL,\n"
	" dead bigint NOT NULL, kept bigint NOT NULL, done bigint NOT NULL,\n"
	" failed bigint NOT NULL,\n"
	" mixed bool NOT NULL DEFAULT false, top bigint NOT NULL DEFAULT 0,\n"
	" floor bigint NOT NULL DEFAULT 0)\n"
	" WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0,\n"
	" autovacuum_vacuum_threshold = 1000);\n"
	/* What was put, and what has become of it. `head`: a claim can begin with it; `line`: it is
	 * in the line of its lane. */
	"CREATE TABLE baton.batch(\n"
	" seq bigint NOT NULL, put_at bigint NOT NULL, due bigint, fence bigint NOT NULL,\n"
	" born bigint, ended_at bigint, until bigint, queue int NOT NULL, shard int NOT NULL,\n"
	" pool int NOT NULL, attempts int NOT NULL, state smallint NOT NULL,\n"
	" rank smallint NOT NULL,\n"
	" flags smallint NOT NULL, head bool NOT NULL, line bool NOT NULL, cancel bool NOT NULL,\n"
	" holds bool NOT NULL, blocks bool NOT NULL, lane text COLLATE \"C\",\n"
	" grp text COLLATE \"C\", retry bytea, error bytea, result bytea, payload bytea NOT NULL,\n"
	" CONSTRAINT batch_seq PRIMARY KEY (seq))\n"
	" WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,\n"
	" autovacuum_vacuum_threshold = 10000);\n"
	"CREATE UNIQUE INDEX batch_born ON baton.batch(born) WHERE born IS NOT NULL;\n"
	"CREATE INDEX batch_head ON baton.batch(queue, pool, rank, seq) WHERE head;\n"
	"CREATE INDEX batch_line ON baton.batch(queue, lane, seq) WHERE line;\n"
	"CREATE INDEX batch_holds ON baton.batch(queue, lane, seq) WHERE holds;\n"
	"CREATE INDEX batch_due ON baton.batch(queue, due, seq) WHERE state IN (2, 3);\n"
	"CREATE INDEX batch_until ON baton.batch(until) WHERE state = 6;\n"
	"CREATE TABLE baton.claim(\n"
	" head bigint NOT NULL, fence bigint NOT NULL, granter bigint NOT NULL,\n"
	" claimed_at bigint NOT NULL, expires_at bigint NOT NULL, queue int NOT NULL,\n"
	" offered bool NOT NULL, token bytea NOT NULL, owner text NOT NULL,\n"
	" lane text COLLATE \"C\", seqs bigint[] NOT NULL, PRIMARY KEY (head, fence))\n"
	" WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,\n"
	" autovacuum_vacuum_threshold = 10000);\n"
	"CREATE INDEX claim_expires ON baton.claim(queue, expires_at) WHERE NOT offered;\n"
	"CREATE INDEX claim_offered ON baton.claim(queue, expires_at) WHERE offered;\n"
	"CREATE INDEX claim_lane ON baton.claim(queue, lane) WHERE lane IS NOT NULL;\n"
	"CREATE INDEX claim_bound ON baton.claim(owner) WHERE expires_at = " NEVER ";\n"
	/* What is remembered for those who ask again. */
	"CREATE TABLE baton.source(\n"
	" key bytea PRIMARY KEY, content bytea NOT NULL, id bigint NOT NULL,\n"
	" until bigint NOT NULL);\n"
	"CREATE INDEX source_until ON baton.source(until);\n"
	"CREATE TABLE baton.answer(\n"
	" head bigint NOT NULL, fence bigint NOT NULL, until bigint NOT NULL,\n"
	" state smallint NOT NULL, token bytea NOT NULL, PRIMARY KEY (head, fence));\n"
	"CREATE TABLE baton.lease(\n"
	" subject text COLLATE \"C\" PRIMARY KEY, held bool NOT NULL, owner text NOT NULL,\n"
	" token bytea NOT NULL, nonce bytea NOT NULL, fence bigint NOT NULL,\n"
	" counter bigint NOT NULL, claimed_at bigint NOT NULL, expires_at bigint NOT NULL,\n"
	" runner bigint) WITH (fillfactor = 50);\n"
	"CREATE INDEX lease_runner ON baton.lease(runner) WHERE runner IS NOT NULL;\n"
	"CREATE TABLE baton.schedule(\n"
	" name text COLLATE \"C\" PRIMARY KEY, cron text NOT NULL, zone text NOT NULL,\n"
	" missed int NOT NULL, queue text NOT NULL, lane text NOT NULL, priority int NOT NULL,\n"
	" payload bytea NOT NULL, last bigint NOT NULL, next bigint NOT NULL);\n"
	/* Its beat changes all the time: no index has it, and nothing else is in its way. */
	"CREATE TABLE baton.runner(\n"
	" number bigint PRIMARY KEY, name text COLLATE \"C\" NOT NULL UNIQUE, slot int NOT NULL,\n"
	" endpoint text NOT NULL, labels text NOT NULL, owner text NOT NULL,\n"
	" weight bigint NOT NULL,\n"
	" ttl bigint NOT NULL, since bigint NOT NULL, beat bigint NOT NULL,\n"
	" host text NOT NULL, queues text NOT NULL, life text NOT NULL,\n"
	" guardian bigint NOT NULL, wish bigint NOT NULL, state text NOT NULL)\n"
	" WITH (fillfactor = 20);\n"
	/* Numbers in a row that begins where the caller thinks it does. */
	"CREATE FUNCTION baton.draw(first bigint, amount bigint) RETURNS void\n"
	" LANGUAGE plpgsql AS $$\n"
	"BEGIN\n"
	" FOR i IN 0 .. amount - 1 LOOP\n"
	"  IF nextval('baton.seq') <> first + i THEN\n"
	"   RAISE EXCEPTION 'the numbers are not in a row' USING ERRCODE = 'BT001';\n"
	"  END IF;\n"
	" END LOOP;\n"
	"END $$;\n"
	/* Makes `head` right in these lanes, in which at most `entered` batches have entered. */
	"CREATE FUNCTION baton.settle(of int, lanes text[], entered bigint) RETURNS void\n"
	" LANGUAGE sql AS $$\n"
	" WITH l AS MATERIALIZED (\n"
	"  SELECT x.lane, q.mode, f.seq, f.state, f.head, f.seq IS NOT NULL AND f.state <> 3\n"
	"   AND NOT EXISTS (SELECT 1 FROM baton.batch h WHERE h.queue = of AND h.lane = x.lane\n"
	"    AND h.holds)\n"
	/* Said so that only the index over lanes can be used, whatever the statistics are. */
	"   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = of AND c.lane = x.lane\n"
	"    AND c.offered IS NOT TRUE) AS free\n"
	"  FROM (SELECT DISTINCT unnest(lanes) AS lane) x\n"
	"  JOIN baton.queue q ON q.id = of\n"
	"  LEFT JOIN LATERAL (SELECT b.seq, b.state, b.head FROM baton.batch b\n"
	"   WHERE b.queue = of AND b.lane = x.lane AND b.line ORDER BY b.seq LIMIT 1) f ON true),\n"
	" n AS (\n"
	"  SELECT y.seq, l.free AND y.seq = l.seq AS head, l.mode FROM l\n"
	"  CROSS JOIN LATERAL (SELECT b.seq, b.head FROM baton.batch b WHERE b.queue = of\n"
	"   AND b.lane = l.lane AND b.line ORDER BY b.seq LIMIT entered + 1) y\n"
	"  WHERE NOT (l.free AND l.head) AND y.head <> (l.free AND y.seq = l.seq))\n"
	" UPDATE baton.batch b SET head = n.head,\n"
	"  pool = CASE WHEN n.mode = 4 THEN b.shard + 1 ELSE 0 END\n"
	" FROM n WHERE b.seq = n.seq\n"
	"$$;\n"
	/* Makes what is due ready, and offers the work of claims that have expired: the first
	 * thousand of each. */
	"CREATE FUNCTION baton.tend(of int, now_ms bigint) RETURNS void\n"
	" LANGUAGE plpgsql AS $$\n"
	"DECLARE touched text[]; moved bigint; n2 bigint; n3 bigint;\n"
	"BEGIN\n"
	" WITH d AS MATERIALIZED (SELECT seq, state FROM baton.batch WHERE queue = of\n"
	"   AND state IN (2, 3) AND due <= now_ms ORDER BY due, seq LIMIT 1000),\n"
	"  u AS (UPDATE baton.batch b SET state = 1, blocks = false, head = b.lane IS NULL,\n"
	"   line = b.lane IS NOT NULL, pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END\n"
	"   FROM d, baton.queue q WHERE b.seq = d.seq AND q.id = of RETURNING b.lane, d.state)\n"
	" SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL), count(*),\n"
	"  count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3)\n"
	"  INTO touched, moved, n2, n3 FROM u;\n"
	" IF moved > 0 THEN\n"
	"  UPDATE baton.queue SET ready = ready + moved, delayed = delayed - n2,\n"
	"   retrying = retrying - n3 WHERE id = of;\n"
	"  PERFORM baton.settle(of, touched, moved);\n"
	" END IF;\n"
	" WITH x AS MATERIALIZED ((SELECT head, fence FROM baton.claim WHERE queue = of\n"
	"   AND NOT offered AND expires_at <= now_ms ORDER BY expires_at LIMIT 1000)\n"
	"   UNION ALL (SELECT head, fence FROM baton.claim WHERE queue = of AND offered\n"
	"   AND expires_at > now_ms LIMIT 1000)),\n"
	"  u AS (UPDATE baton.claim c SET offered = NOT c.offered FROM x\n"
	"   WHERE c.head = x.head AND c.fence = x.fence RETURNING c.lane, c.seqs, c.offered),\n"
	"  h AS (UPDATE baton.batch b SET head = u.offered,\n"
	"   pool = CASE WHEN q.mode = 4 THEN b.shard + 1 ELSE 0 END\n"
	"   FROM u, baton.queue q WHERE u.lane IS NULL AND b.seq = u.seqs[1] AND q.id = of\n"
	"   RETURNING 1)\n"
	" SELECT array_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL), count(*)\n"
	"  INTO touched, moved FROM u;\n"
	" IF touched IS NOT NULL THEN\n"
	"  PERFORM baton.settle(of, touched, 0);\n"
	" END IF;\n"
	"END $$;\n"
	/* Forgets what is no longer needed, at most so many. */
	"CREATE FUNCTION baton.tidy(now_ms bigint, most bigint) RETURNS bigint\n"
	" LANGUAGE plpgsql AS $$\n"
	"DECLARE n bigint; upto bigint; total bigint := 0;\n"
	"BEGIN\n"
	" WITH d AS (DELETE FROM baton.batch WHERE seq IN (SELECT seq FROM baton.batch\n"
	"   WHERE state = 6 AND until <= now_ms ORDER BY until LIMIT most FOR UPDATE SKIP LOCKED)\n"
	"   RETURNING queue),\n"
	"  s AS (SELECT queue, count(*) AS n FROM d GROUP BY queue),\n"
	"  u AS (UPDATE baton.queue q SET kept = q.kept - s.n FROM s WHERE q.id = s.queue\n"
	"   RETURNING s.n)\n"
	" SELECT coalesce(sum(u.n), 0) INTO total FROM u;\n"
	" DELETE FROM baton.source WHERE key IN (SELECT s.key FROM baton.source s\n"
	"  WHERE s.until <= now_ms AND NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = s.id\n"
	"  AND b.born IS NULL) AND NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.born = s.id)\n"
	"  ORDER BY s.until LIMIT most - total FOR UPDATE SKIP LOCKED);\n"
	" GET DIAGNOSTICS n = ROW_COUNT;\n"
	" total := total + n;\n"
	/* These are in the order of their numbers, not of their times: each call looks at the next
	 * few, and begins anew after the last. */
	" WITH x AS MATERIALIZED (SELECT a.head, a.fence, a.until FROM baton.answer a,\n"
	" baton.state t\n"
	"   WHERE a.head > t.swept ORDER BY a.head LIMIT most - total),\n"
	"  d AS (DELETE FROM baton.answer a USING x WHERE a.head = x.head AND a.fence = x.fence\n"
	"   AND x.until <= now_ms RETURNING 1)\n"
	" SELECT (SELECT count(*) FROM d), CASE WHEN count(*) < most - total THEN 0\n"
	"  ELSE max(x.head) END INTO n, upto FROM x;\n"
	" UPDATE baton.state SET swept = upto WHERE swept <> upto;\n"
	" RETURN total + n;\n"
	"END $$;\n"
	/* What does not fit together: a sentence, and how many of them. */
	"CREATE FUNCTION baton.faults() RETURNS TABLE(sentence text, amount bigint)\n"
	" LANGUAGE sql STABLE AS $$\n"
	" SELECT * FROM (\n"
	"  SELECT 'batches have no queue', count(*) FROM baton.batch b\n"
	"   WHERE NOT EXISTS (SELECT 1 FROM baton.queue q WHERE q.id = b.queue)\n"
	"  UNION ALL SELECT 'batches have no state', count(*) FROM baton.batch\n"
	"   WHERE state NOT BETWEEN 1 AND 6\n"
	"  UNION ALL SELECT 'batches have a number that was not given out', count(*)\n"
	"   FROM baton.batch WHERE seq > (SELECT last_value FROM baton.seq)\n"
	"  UNION ALL SELECT 'batches are in a line, or are not, though it should be otherwise',\n"
	"   count(*) FROM baton.batch\n"
	"   WHERE line <> (lane IS NOT NULL AND (state IN (1, 4) OR blocks))\n"
	"  UNION ALL SELECT 'batches without a lane can be claimed, or cannot, though it should be "
	"otherwise', count(*) FROM baton.batch b WHERE lane IS NULL AND head <> (state = 1 OR\n"
	"   (state = 4 AND EXISTS (SELECT 1 FROM baton.claim c WHERE c.head = b.seq\n"
	"   AND c.lane IS NULL AND c.offered)))\n"
	"  UNION ALL SELECT 'heads are not those of their lanes', count(*) FROM baton.batch b\n"
	"   WHERE b.lane IS NOT NULL AND b.head AND (NOT b.line OR b.state = 3\n"
	"   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane\n"
	"    AND o.line AND o.seq < b.seq)\n"
	"   OR EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue AND o.lane = b.lane\n"
	"    AND o.holds)\n"
	"   OR EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue AND c.lane = b.lane\n"
	"    AND NOT c.offered))\n"
	"  UNION ALL SELECT 'lanes cannot be claimed from, though they should', count(*) FROM (\n"
	"   SELECT DISTINCT ON (queue, lane) * FROM baton.batch WHERE line\n"
	"   ORDER BY queue, lane, seq) b WHERE NOT b.head AND b.state <> 3\n"
	"   AND NOT EXISTS (SELECT 1 FROM baton.batch o WHERE o.queue = b.queue\n"
	"    AND o.lane = b.lane AND o.holds)\n"
	"   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue\n"
	"    AND c.lane = b.lane AND NOT c.offered)\n"
	"  UNION ALL SELECT 'batches are claimed without a claim', count(*) FROM baton.batch b\n"
	"   WHERE b.state = 4 AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = b.queue\n"
	"   AND b.seq = ANY(c.seqs))\n"
	"  UNION ALL SELECT 'claims have a batch that is not claimed', count(*)\n"
	"   FROM baton.claim c CROSS JOIN LATERAL unnest(c.seqs) s(seq)\n"
	"   WHERE NOT EXISTS (SELECT 1 FROM baton.batch b WHERE b.seq = s.seq AND b.state = 4\n"
	"   AND b.queue = c.queue AND b.lane IS NOT DISTINCT FROM c.lane)\n"
	"  UNION ALL SELECT 'claims have no batch', count(*) FROM baton.claim c\n"
	"   WHERE cardinality(c.seqs) = 0\n"
	"  UNION ALL SELECT 'queues have another number of batches than they count', count(*)\n"
	"   FROM baton.queue q LEFT JOIN LATERAL (SELECT\n"
	"    count(*) FILTER (WHERE state = 1) AS s1, count(*) FILTER (WHERE state = 2) AS s2,\n"
	"    count(*) FILTER (WHERE state = 3) AS s3, count(*) FILTER (WHERE state = 4) AS s4,\n"
	"    count(*) FILTER (WHERE state = 5) AS s5, count(*) FILTER (WHERE state = 6) AS s6\n"
	"    FROM baton.batch b WHERE b.queue = q.id) n ON true\n"
	"   WHERE (q.ready, q.delayed, q.retrying, q.claimed, q.dead, q.kept) <>\n"
	"    (n.s1, n.s2, n.s3, n.s4, n.s5, n.s6)\n"
	"  ) x(sentence, amount) WHERE amount > 0\n"
	"$$;\n",

	/* For users' own transactions. What they ask for is staged, and done when they commit: only
	 * then are the locks of queues taken, and numbers given, so that nobody waits for them. */
	"CREATE UNLOGGED TABLE baton.staged(\n"
	" id bigint NOT NULL, xid xid8 NOT NULL, what text NOT NULL, queue text COLLATE \"C\"\n"
	" NOT NULL,\n"
	" lane text COLLATE \"C\", rank smallint, flags smallint, due bigint, grp text, payload\n"
	" bytea,\n"
	" head bigint, fence bigint, token bytea);\n"
	"CREATE INDEX staged_xid ON baton.staged(xid);\n"
	"CREATE FUNCTION baton.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$\n"
	" SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;\n"
	"CREATE FUNCTION baton.stripe(name text) RETURNS int LANGUAGE sql IMMUTABLE AS $$\n"
	" SELECT 64 + (((get_byte(h, 0) << 8) | get_byte(h, 1)) & 1023)\n"
	" FROM (SELECT sha256(convert_to(name, 'UTF8')) AS h) x $$;\n"
	"CREATE FUNCTION baton.shard(queue text, lane text, id bigint, shards int) RETURNS int\n"
	" LANGUAGE sql IMMUTABLE AS $$\n"
	" SELECT (CASE WHEN lane IS NULL THEN id ELSE ('x' || encode(substring(sha256(\n"
	"  convert_to(queue, 'UTF8') || '\\x00'::bytea || convert_to(lane, 'UTF8'))\n"
	"  FROM 1 FOR 7), 'hex'))::bit(56)::bigint END % shards)::int $$;\n"
	"CREATE FUNCTION baton.check_name(what text, name text) RETURNS void\n"
	" LANGUAGE plpgsql IMMUTABLE AS $$\n"
	"BEGIN\n"
	" IF name IS NULL OR octet_length(name) NOT BETWEEN 1 AND 255 THEN\n"
	"  RAISE EXCEPTION '% has % bytes: 1 to 255 are allowed', what,\n"
	"   coalesce(octet_length(name), 0) USING ERRCODE = '22023';\n"
	" END IF;\n"
	" IF name ~ '[\\x01-\\x1f\\x7f]' OR (what = 'the queue' AND strpos(name, '/') > 0) THEN\n"
	"  RAISE EXCEPTION '% has a character that is not allowed', what USING ERRCODE = '22023';\n"
	" END IF;\n"
	"END $$;\n"
	"CREATE FUNCTION baton.put(queue text, payload bytea, lane text DEFAULT NULL,\n"
	" options jsonb DEFAULT '{}') RETURNS bigint\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"DECLARE q baton.queue; number bigint; flags int := 0; wait interval; word text; due_ms\n"
	" bigint;\n"
	"BEGIN\n"
	" PERFORM baton.check_name('the queue', queue);\n"
	" IF lane IS NOT NULL THEN PERFORM baton.check_name('the lane', lane); END IF;\n"
	" FOR word IN SELECT jsonb_object_keys(options) LOOP\n"
	"  IF word NOT IN ('priority', 'delay', 'class', 'delivery', 'slot', 'group') THEN\n"
	"   RAISE EXCEPTION '% is no option of baton.put', quote_literal(word)\n"
	"    USING ERRCODE = '22023';\n"
	"  END IF;\n"
	" END LOOP;\n"
	" IF coalesce((options->>'priority')::int, 0) NOT BETWEEN 0 AND 9 THEN\n"
	"  RAISE EXCEPTION 'priority is %: 0 to 9 are allowed', options->>'priority'\n"
	"   USING ERRCODE = '22023';\n"
	" END IF;\n"
	" flags := CASE coalesce(options->>'class', 'work') WHEN 'work' THEN 0 WHEN 'command'\n"
	" THEN 1\n"
	"  END + CASE coalesce(options->>'delivery', 'earliest') WHEN 'earliest' THEN 0\n"
	"  WHEN 'after_commit' THEN 2 END + CASE coalesce(options->>'slot', 'exclusive')\n"
	"  WHEN 'exclusive' THEN 0 WHEN 'join' THEN 4 END;\n"
	" IF flags IS NULL THEN\n"
	"  RAISE EXCEPTION 'class is work or command, delivery earliest or after_commit, slot '\n"
	"   'exclusive or join' USING ERRCODE = '22023';\n"
	" END IF;\n"
	" wait := coalesce((options->>'delay')::interval, interval '0');\n"
	" IF wait < interval '0' OR wait > interval '1 year' THEN\n"
	"  RAISE EXCEPTION 'delay is %: 0 to 1 year are allowed', wait USING ERRCODE = '22023';\n"
	" END IF;\n"
	" IF wait > interval '0' THEN\n"
	"  due_ms := baton.now_ms() + (extract(epoch FROM wait) * 1000)::bigint;\n"
	" END IF;\n"
	" SELECT * INTO q FROM baton.queue x WHERE x.name = queue;\n"
	" IF octet_length(payload) > coalesce(q.payload_max, 1048576) OR payload IS NULL THEN\n"
	"  RAISE EXCEPTION 'the payload has % bytes: queue % allows %', octet_length(payload),\n"
	"   quote_literal(queue), coalesce(q.payload_max, 1048576) USING ERRCODE = '22023';\n"
	" END IF;\n"
	" IF q.waiting_max > 0 AND q.ready + q.delayed + q.retrying >= q.waiting_max THEN\n"
	"  RAISE EXCEPTION\n"
	" 'queue % has % jobs waiting, and its waiting_max is %: put again when '\n"
	"   'some are done', quote_literal(queue), q.ready + q.delayed + q.retrying,\n"
	" q.waiting_max\n"
	"   USING ERRCODE = '54000';\n"
	" END IF;\n"
	" number := nextval('baton.seq');\n"
	" INSERT INTO baton.staged(id, xid, what, queue, lane, rank, flags, due, grp, payload)\n"
	"  VALUES (number, pg_current_xact_id(), 'put', queue, lane,\n"
	"  9 - coalesce((options->>'priority')::int, 0), flags, due_ms, options->>'group',\n"
	" payload);\n"
	" RETURN number;\n"
	"END $$;\n"
	"CREATE FUNCTION baton.put(queue text, payload text, lane text DEFAULT NULL,\n"
	" options jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$\n"
	" SELECT baton.put(queue, convert_to(payload, 'UTF8'), lane, options) $$;\n"
	"CREATE FUNCTION baton.put(queue text, payload jsonb, lane text DEFAULT NULL,\n"
	" options jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$\n"
	" SELECT baton.put(queue, convert_to(payload::text, 'UTF8'), lane, options) $$;\n"
	"CREATE FUNCTION baton.put_many(queue text, payloads bytea[], lane text DEFAULT NULL,\n"
	" options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$\n"
	" SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;\n"
	"CREATE FUNCTION baton.put_many(queue text, payloads text[], lane text DEFAULT NULL,\n"
	" options jsonb DEFAULT '{}') RETURNS SETOF bigint LANGUAGE sql AS $$\n"
	" SELECT baton.put(queue, p, lane, options) FROM unnest(payloads) p $$;\n"
	"CREATE FUNCTION baton.find(number bigint) RETURNS baton.batch LANGUAGE sql STABLE AS $$\n"
	" (SELECT * FROM baton.batch WHERE seq = number AND born IS NULL) UNION ALL\n"
	" (SELECT * FROM baton.batch WHERE born = number) LIMIT 1 $$;\n"
	/* True: there is such a job; it is removed, or its holder told, when the user commits. */
	"CREATE FUNCTION baton.cancel(id bigint) RETURNS bool\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"DECLARE b baton.batch := baton.find(id);\n"
	"BEGIN\n"
	" IF b.seq IS NULL OR b.state = 6 THEN\n"
	"  DELETE FROM baton.staged s WHERE s.xid = pg_current_xact_id() AND s.what = 'put'\n"
	"   AND s.id = cancel.id;\n"
	"  RETURN FOUND;\n"
	" END IF;\n"
	" INSERT INTO baton.staged(id, xid, what, queue) SELECT cancel.id, pg_current_xact_id(),\n"
	"  'cancel', q.name FROM baton.queue q WHERE q.id = b.queue;\n"
	" RETURN true;\n"
	"END $$;\n"
	/* Ends a claim when the user commits. If it is lost by then, the commit fails. */
	"CREATE FUNCTION baton.complete(claim text, token text) RETURNS void\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"DECLARE c baton.claim;\n"
	"BEGIN\n"
	" IF claim !~ '^[0-9]{1,18}-[0-9]{1,18}$' OR token !~ '^[0-9a-f]{32}$' THEN\n"
	"  RAISE EXCEPTION 'this is no claim, or no token' USING ERRCODE = '22023';\n"
	" END IF;\n"
	" SELECT * INTO c FROM baton.claim x WHERE x.head = split_part(claim, '-', 1)::bigint\n"
	"  AND x.fence = split_part(claim, '-', 2)::bigint AND x.token = decode(complete.token,\n"
	" 'hex');\n"
	" IF c.head IS NULL THEN\n"
	"  RAISE EXCEPTION 'claim % is not held any more', claim USING ERRCODE = 'BT002';\n"
	" END IF;\n"
	" INSERT INTO baton.staged(id, xid, what, queue, head, fence, token)\n"
	"  SELECT 0, pg_current_xact_id(), 'complete', q.name, c.head, c.fence, c.token\n"
	"  FROM baton.queue q WHERE q.id = c.queue;\n"
	"END $$;\n"
	"CREATE FUNCTION baton.staged_complete(s baton.staged) RETURNS void LANGUAGE plpgsql AS\n"
	" $$\n"
	"DECLARE c baton.claim; q baton.queue; n bigint;\n"
	"BEGIN\n"
	" DELETE FROM baton.claim x WHERE x.head = s.head AND x.fence = s.fence\n"
	"  AND x.token = s.token RETURNING * INTO c;\n"
	" IF c.head IS NULL THEN\n"
	"  RAISE EXCEPTION 'claim %-% is not held any more', s.head, s.fence\n"
	"   USING ERRCODE = 'BT002';\n"
	" END IF;\n"
	" SELECT * INTO q FROM baton.queue WHERE id = c.queue;\n"
	" n := cardinality(c.seqs);\n"
	" IF q.keep > 0 THEN\n"
	"  UPDATE baton.batch SET state = 6, head = false, line = false, cancel = false,\n"
	"   fence = s.fence, ended_at = baton.now_ms(), until = baton.now_ms() + q.keep / 1000000\n"
	"   WHERE seq = ANY(c.seqs);\n"
	" ELSE\n"
	"  DELETE FROM baton.batch WHERE seq = ANY(c.seqs);\n"
	" END IF;\n"
	" UPDATE baton.queue SET claimed = claimed - n, done = done + n,\n"
	"  kept = kept + CASE WHEN q.keep > 0 THEN n ELSE 0 END WHERE id = c.queue;\n"
	" INSERT INTO baton.answer(head, fence, token, state, until) VALUES (s.head, s.fence,\n"
	" s.token,\n"
	"  CASE WHEN q.keep > 0 THEN 6 ELSE 7 END, baton.now_ms() + q.dedupe / 1000000);\n"
	" IF c.lane IS NOT NULL THEN PERFORM baton.settle(c.queue, ARRAY[c.lane], n); END IF;\n"
	"END $$;\n"
	"CREATE FUNCTION baton.staged_cancel(s baton.staged) RETURNS void LANGUAGE plpgsql AS $$\n"
	"DECLARE b baton.batch := baton.find(s.id);\n"
	"BEGIN\n"
	" IF b.state = 4 THEN\n"
	"  UPDATE baton.batch SET cancel = true WHERE seq = b.seq;\n"
	" ELSIF b.state IN (1, 2, 3, 5) THEN\n"
	"  DELETE FROM baton.batch WHERE seq = b.seq;\n"
	"  UPDATE baton.queue SET ready = ready - (b.state = 1)::int,\n"
	"   delayed = delayed - (b.state = 2)::int, retrying = retrying - (b.state = 3)::int,\n"
	"   dead = dead - (b.state = 5)::int WHERE id = b.queue;\n"
	"  IF b.lane IS NOT NULL THEN PERFORM baton.settle(b.queue, ARRAY[b.lane], 1); END IF;\n"
	" END IF;\n"
	"END $$;\n"
	"CREATE FUNCTION baton.staged_put(mine xid8) RETURNS void LANGUAGE plpgsql AS $$\n"
	"DECLARE lanes record; now_at bigint := baton.now_ms();\n"
	"BEGIN\n"
	" INSERT INTO baton.queue(name, stripe, mode, shards, paused, payload_max, waiting_max,\n"
	"  attempts, backoff, base, cap, lane_attempts, lane_backoff, lane_base, lane_cap,\n"
	" on_retry,\n"
	"  on_dead, dedupe, keep, ready, delayed, retrying, claimed, dead, kept, done, failed)\n"
	"  SELECT DISTINCT s.queue, baton.stripe(s.queue), 1, 16, false, 1048576, 0, 20, 1,\n"
	" 1000000000,\n"
	"  3600000000000, 5, 1, 1000000000, 30000000000, 1, 1, 86400000000000, 0, 0, 0, 0, 0,\n"
	" 0, 0, 0,\n"
	"  0 FROM baton.staged s WHERE s.xid = mine AND s.what = 'put'\n"
	"  AND NOT EXISTS (SELECT 1 FROM baton.queue q WHERE q.name = s.queue);\n"
	" INSERT INTO baton.batch(seq, born, queue, lane, shard, pool, head, line, state, rank,\n"
	" flags,\n"
	"  put_at, due, grp, attempts, fence, cancel, holds, blocks, payload)\n"
	"  SELECT x.seq, x.id, x.qid, x.lane, x.shard, CASE WHEN x.mode = 4 THEN x.shard + 1\n"
	"  ELSE 0 END, x.lane IS NULL AND x.ready, x.lane IS NOT NULL AND x.ready,\n"
	"  CASE WHEN x.ready THEN 1 ELSE 2 END, x.rank, x.flags, now_at,\n"
	"  CASE WHEN x.ready THEN NULL ELSE x.due END, x.grp, 0, 0, false, false, false,\n"
	" x.payload\n"
	"  FROM (SELECT nextval('baton.seq') AS seq, y.* FROM (SELECT s.*, q.id AS qid, q.mode,\n"
	"   baton.shard(s.queue, s.lane, s.id, q.shards) AS shard,\n"
	"   s.due IS NULL OR s.due <= now_at AS ready FROM baton.staged s\n"
	"   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'\n"
	"   ORDER BY s.id) y) x;\n"
	" FOR lanes IN SELECT q.id, count(*) AS n, count(*) FILTER (WHERE s.due > now_at) AS\n"
	" late,\n"
	"   array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL) AS names FROM baton.staged s\n"
	"   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'\n"
	"   GROUP BY q.id ORDER BY q.id LOOP\n"
	"  UPDATE baton.queue SET ready = ready + lanes.n - lanes.late,\n"
	"   delayed = delayed + lanes.late WHERE id = lanes.id;\n"
	"  IF lanes.names IS NOT NULL THEN\n"
	"   PERFORM baton.settle(lanes.id, lanes.names, lanes.n);\n"
	"  END IF;\n"
	" END LOOP;\n"
	"END $$;\n"
	/* All that a transaction has staged is done by the first of its triggers. */
	"CREATE FUNCTION baton.on_commit() RETURNS trigger\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"DECLARE mine xid8 := pg_current_xact_id(); s baton.staged;\n"
	"BEGIN\n"
	" IF NOT EXISTS (SELECT 1 FROM baton.staged x WHERE x.xid = mine) THEN RETURN NULL; END\n"
	" IF;\n"
	" IF current_setting('transaction_isolation') <> 'read committed' THEN\n"
	"  RAISE EXCEPTION 'a transaction that uses baton has to be READ COMMITTED'\n"
	"   USING ERRCODE = '0A000';\n"
	" END IF;\n"
	" PERFORM pg_advisory_xact_lock(1650553967, x.stripe) FROM (SELECT DISTINCT\n"
	"  baton.stripe(y.queue) AS stripe FROM baton.staged y WHERE y.xid = mine ORDER BY 1) x;\n"
	" FOR s IN SELECT * FROM baton.staged x WHERE x.xid = mine AND x.what <> 'put' LOOP\n"
	"  IF s.what = 'complete' THEN PERFORM baton.staged_complete(s);\n"
	"  ELSE PERFORM baton.staged_cancel(s); END IF;\n"
	" END LOOP;\n"
	" PERFORM baton.staged_put(mine);\n"
	" DELETE FROM baton.staged x WHERE x.xid = mine;\n"
	" RETURN NULL;\n"
	"END $$;\n"
	"CREATE CONSTRAINT TRIGGER staged AFTER INSERT ON baton.staged\n"
	" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION baton.on_commit();\n"
	"CREATE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue, b.lane,\n"
	" (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] AS state,\n"
	" 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,\n"
	" CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,\n"
	" convert_from(b.error, 'UTF8') AS error, b.payload\n"
	" FROM baton.batch b JOIN baton.queue q ON q.id = b.queue;\n"
	/* Who may what. Roles belong to a whole server, so they may be there already. */
	"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;\n"
	"DO $$ DECLARE r text; BEGIN\n"
	" FOREACH r IN ARRAY ARRAY['baton_put', 'baton_runner', 'baton_operator'] LOOP\n"
	"  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN\n"
	"   BEGIN EXECUTE format('CREATE ROLE %I NOLOGIN', r);\n"
	"   EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN\n"
	" NULL;\n"
	"   END;\n"
	"  END IF;\n"
	" END LOOP;\n"
	" IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',\n"
	"   'baton_operator')) = 3 THEN\n"
	"  GRANT USAGE ON SCHEMA baton TO baton_put, baton_runner, baton_operator;\n"
	"  GRANT EXECUTE ON FUNCTION baton.put(text, bytea, text, jsonb),\n"
	"   baton.put(text, text, text, jsonb), baton.put(text, jsonb, text, jsonb),\n"
	"   baton.put_many(text, bytea[], text, jsonb), baton.put_many(text, text[], text, jsonb)\n"
	"   TO baton_put, baton_operator;\n"
	"  GRANT EXECUTE ON FUNCTION baton.cancel(bigint) TO baton_operator;\n"
	"  GRANT EXECUTE ON FUNCTION baton.complete(text, text) TO baton_runner, baton_operator;\n"
	"  GRANT SELECT ON baton.jobs TO baton_operator;\n"
	"  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO baton_runner,\n"
	"   baton_operator;\n"
	"  GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA baton TO baton_runner,\n"
	"   baton_operator;\n"
	"  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;\n"
	" END IF;\n"
	"END $$;\n",

	/* Who sleeps leaves a row; who commits takes it away and wakes them all. Nobody waits for
	 * such a row, not even while a user's transaction has it. */
	"CREATE UNLOGGED TABLE baton.sleeper(since bigint NOT NULL);\n"
	"CREATE FUNCTION baton.ring(who text) RETURNS void LANGUAGE plpgsql AS $$\n"
	"BEGIN\n"
	" IF EXISTS (SELECT 1 FROM baton.sleeper) THEN\n"
	"  DELETE FROM baton.sleeper WHERE ctid = ANY(ARRAY(SELECT ctid FROM baton.sleeper\n"
	"   FOR UPDATE SKIP LOCKED));\n"
	"  PERFORM pg_notify('baton', who);\n"
	" END IF;\n"
	"END $$;\n"
	"CREATE OR REPLACE FUNCTION baton.on_commit() RETURNS trigger\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"DECLARE mine xid8 := pg_current_xact_id(); s baton.staged;\n"
	"BEGIN\n"
	" IF NOT EXISTS (SELECT 1 FROM baton.staged x WHERE x.xid = mine) THEN RETURN NULL; END\n"
	" IF;\n"
	" IF current_setting('transaction_isolation') <> 'read committed' THEN\n"
	"  RAISE EXCEPTION 'a transaction that uses baton has to be READ COMMITTED'\n"
	"   USING ERRCODE = '0A000';\n"
	" END IF;\n"
	" PERFORM pg_advisory_xact_lock(1650553967, x.stripe) FROM (SELECT DISTINCT\n"
	"  baton.stripe(y.queue) AS stripe FROM baton.staged y WHERE y.xid = mine ORDER BY 1) x;\n"
	" FOR s IN SELECT * FROM baton.staged x WHERE x.xid = mine AND x.what <> 'put' LOOP\n"
	"  IF s.what = 'complete' THEN PERFORM baton.staged_complete(s);\n"
	"  ELSE PERFORM baton.staged_cancel(s); END IF;\n"
	" END LOOP;\n"
	" PERFORM baton.staged_put(mine);\n"
	" DELETE FROM baton.staged x WHERE x.xid = mine;\n"
	" PERFORM baton.ring('');\n"
	" RETURN NULL;\n"
	"END $$;\n"
	/* Source keys: what is remembered of them is the same as in C. Who puts one in his own
	 * transaction locks it until the end, so that two of them get the same answer. */
	"ALTER TABLE baton.staged ADD COLUMN key bytea, ADD COLUMN content bytea;\n"
	"CREATE FUNCTION baton.packed(word text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$\n"
	" SELECT int8send(octet_length(word)) || convert_to(word, 'UTF8') $$;\n"
	"CREATE FUNCTION baton.known(key_hash bytea, content_hash bytea) RETURNS bigint\n"
	" LANGUAGE plpgsql AS $$\n"
	"DECLARE known_id bigint; known_content bytea;\n"
	"BEGIN\n"
	" PERFORM pg_advisory_xact_lock(1650553968, ('x' || encode(substring(key_hash FROM 1\n"
	"  FOR 4), 'hex'))::bit(32)::int);\n"
	" SELECT s.id, s.content INTO known_id, known_content FROM baton.staged s\n"
	"  WHERE s.xid = pg_current_xact_id() AND s.key = key_hash;\n"
	" IF known_id IS NULL THEN\n"
	"  SELECT o.id, o.content INTO known_id, known_content FROM baton.source o\n"
	"   WHERE o.key = key_hash AND (o.until > baton.now_ms()\n"
	"   OR (baton.find(o.id)).seq IS NOT NULL);\n"
	" END IF;\n"
	" IF known_content <> content_hash THEN\n"
	"  RAISE EXCEPTION 'the source key was put with other content, as job %', known_id\n"
	"   USING ERRCODE = 'BT003';\n"
	" END IF;\n"
	" RETURN known_id;\n"
	"END $$;\n"
	"CREATE OR REPLACE FUNCTION baton.put(queue text, payload bytea, lane text DEFAULT NULL,\n"
	" options jsonb DEFAULT '{}') RETURNS bigint\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"DECLARE q baton.queue; number bigint; flags int := 0; wait interval; word text; due_ms\n"
	" bigint; source_key text := options->>'source'; key_hash bytea; content_hash bytea;\n"
	"BEGIN\n"
	" PERFORM baton.check_name('the queue', queue);\n"
	" IF lane IS NOT NULL THEN PERFORM baton.check_name('the lane', lane); END IF;\n"
	" FOR word IN SELECT jsonb_object_keys(options) LOOP\n"
	"  IF word NOT IN ('priority', 'delay', 'class', 'delivery', 'slot', 'group',\n"
	"   'source') THEN\n"
	"   RAISE EXCEPTION '% is no option of baton.put', quote_literal(word)\n"
	"    USING ERRCODE = '22023';\n"
	"  END IF;\n"
	" END LOOP;\n"
	" IF coalesce((options->>'priority')::int, 0) NOT BETWEEN 0 AND 9 THEN\n"
	"  RAISE EXCEPTION 'priority is %: 0 to 9 are allowed', options->>'priority'\n"
	"   USING ERRCODE = '22023';\n"
	" END IF;\n"
	" flags := CASE coalesce(options->>'class', 'work') WHEN 'work' THEN 0 WHEN 'command'\n"
	" THEN 1\n"
	"  END + CASE coalesce(options->>'delivery', 'earliest') WHEN 'earliest' THEN 0\n"
	"  WHEN 'after_commit' THEN 2 END + CASE coalesce(options->>'slot', 'exclusive')\n"
	"  WHEN 'exclusive' THEN 0 WHEN 'join' THEN 4 END;\n"
	" IF flags IS NULL THEN\n"
	"  RAISE EXCEPTION 'class is work or command, delivery earliest or after_commit, slot '\n"
	"   'exclusive or join' USING ERRCODE = '22023';\n"
	" END IF;\n"
	" wait := coalesce((options->>'delay')::interval, interval '0');\n"
	" IF wait < interval '0' OR wait > interval '1 year' THEN\n"
	"  RAISE EXCEPTION 'delay is %: 0 to 1 year are allowed', wait USING ERRCODE = '22023';\n"
	" END IF;\n"
	" IF wait > interval '0' THEN\n"
	"  due_ms := baton.now_ms() + (extract(epoch FROM wait) * 1000)::bigint;\n"
	" END IF;\n"
	" SELECT * INTO q FROM baton.queue x WHERE x.name = queue;\n"
	" IF octet_length(payload) > coalesce(q.payload_max, 1048576) OR payload IS NULL THEN\n"
	"  RAISE EXCEPTION 'the payload has % bytes: queue % allows %', octet_length(payload),\n"
	"   quote_literal(queue), coalesce(q.payload_max, 1048576) USING ERRCODE = '22023';\n"
	" END IF;\n"
	" IF source_key IS NOT NULL THEN\n"
	"  PERFORM baton.check_name('the source key', source_key);\n"
	"  key_hash := sha256(baton.packed(queue) || baton.packed(coalesce(lane, ''))\n"
	"   || baton.packed(source_key));\n"
	"  content_hash := sha256(baton.packed(queue) || baton.packed(coalesce(lane, ''))\n"
	"   || int8send(1 + (flags & 1)) || int8send(1 + (flags >> 1 & 1))\n"
	"   || int8send(1 + (flags >> 2 & 1)) || baton.packed(coalesce(options->>'group', ''))\n"
	"   || int8send(coalesce((options->>'priority')::int, 0))\n"
	"   || int8send((extract(epoch FROM wait) * 1000000)::bigint * 1000)\n"
	"   || int8send(0) || int8send(0) || int8send(0) || int8send(0) || int8send(0)\n"
	"   || int8send(1) || int8send(octet_length(payload)) || payload);\n"
	"  number := baton.known(key_hash, content_hash);\n"
	"  IF number IS NOT NULL THEN RETURN number; END IF;\n"
	" END IF;\n"
	" IF q.waiting_max > 0 AND q.ready + q.delayed + q.retrying >= q.waiting_max THEN\n"
	"  RAISE EXCEPTION\n"
	" 'queue % has % jobs waiting, and its waiting_max is %: put again when '\n"
	"   'some are done', quote_literal(queue), q.ready + q.delayed + q.retrying,\n"
	" q.waiting_max\n"
	"   USING ERRCODE = '54000';\n"
	" END IF;\n"
	" number := nextval('baton.seq');\n"
	" INSERT INTO baton.staged(id, xid, what, queue, lane, rank, flags, due, grp, payload,\n"
	"  key, content) VALUES (number, pg_current_xact_id(), 'put', queue, lane,\n"
	"  9 - coalesce((options->>'priority')::int, 0), flags, due_ms, options->>'group',\n"
	" payload, key_hash, content_hash);\n"
	" RETURN number;\n"
	"END $$;\n"
	"CREATE OR REPLACE FUNCTION baton.staged_put(mine xid8) RETURNS void\n"
	" LANGUAGE plpgsql AS $$\n"
	"DECLARE lanes record; now_at bigint := baton.now_ms();\n"
	"BEGIN\n"
	" INSERT INTO baton.queue(name, stripe, mode, shards, paused, payload_max, waiting_max,\n"
	"  attempts, backoff, base, cap, lane_attempts, lane_backoff, lane_base, lane_cap,\n"
	" on_retry,\n"
	"  on_dead, dedupe, keep, ready, delayed, retrying, claimed, dead, kept, done, failed)\n"
	"  SELECT DISTINCT s.queue, baton.stripe(s.queue), 1, 16, false, 1048576, 0, 20, 1,\n"
	" 1000000000,\n"
	"  3600000000000, 5, 1, 1000000000, 30000000000, 1, 1, 86400000000000, 0, 0, 0, 0, 0,\n"
	" 0, 0, 0,\n"
	"  0 FROM baton.staged s WHERE s.xid = mine AND s.what = 'put'\n"
	"  AND NOT EXISTS (SELECT 1 FROM baton.queue q WHERE q.name = s.queue);\n"
	/* Who stages a key has looked before; but those who do not stage take no lock of it. */
	" IF EXISTS (SELECT 1 FROM baton.staged s JOIN baton.source o ON o.key = s.key\n"
	"   WHERE s.xid = mine AND s.what = 'put' AND (o.until > now_at\n"
	"   OR (baton.find(o.id)).seq IS NOT NULL)) THEN\n"
	"  RAISE EXCEPTION 'somebody else has put the same source key meanwhile: do it again'\n"
	"   USING ERRCODE = '40001';\n"
	" END IF;\n"
	" INSERT INTO baton.source(key, content, id, until) SELECT s.key, s.content, s.id,\n"
	"  now_at + q.dedupe / 1000000 FROM baton.staged s JOIN baton.queue q ON q.name = s.queue\n"
	"  WHERE s.xid = mine AND s.what = 'put' AND s.key IS NOT NULL ON CONFLICT (key)\n"
	"  DO UPDATE SET content = excluded.content, id = excluded.id, until = excluded.until;\n"
	" INSERT INTO baton.batch(seq, born, queue, lane, shard, pool, head, line, state, rank,\n"
	" flags,\n"
	"  put_at, due, grp, attempts, fence, cancel, holds, blocks, payload)\n"
	"  SELECT x.seq, x.id, x.qid, x.lane, x.shard, CASE WHEN x.mode = 4 THEN x.shard + 1\n"
	"  ELSE 0 END, x.lane IS NULL AND x.ready, x.lane IS NOT NULL AND x.ready,\n"
	"  CASE WHEN x.ready THEN 1 ELSE 2 END, x.rank, x.flags, now_at,\n"
	"  CASE WHEN x.ready THEN NULL ELSE x.due END, x.grp, 0, 0, false, false, false,\n"
	" x.payload\n"
	"  FROM (SELECT nextval('baton.seq') AS seq, y.* FROM (SELECT s.*, q.id AS qid, q.mode,\n"
	"   baton.shard(s.queue, s.lane, s.id, q.shards) AS shard,\n"
	"   s.due IS NULL OR s.due <= now_at AS ready FROM baton.staged s\n"
	"   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'\n"
	"   ORDER BY s.id) y) x;\n"
	" FOR lanes IN SELECT q.id, count(*) AS n, count(*) FILTER (WHERE s.due > now_at) AS\n"
	" late,\n"
	"   array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL) AS names FROM baton.staged s\n"
	"   JOIN baton.queue q ON q.name = s.queue WHERE s.xid = mine AND s.what = 'put'\n"
	"   GROUP BY q.id ORDER BY q.id LOOP\n"
	"  UPDATE baton.queue SET ready = ready + lanes.n - lanes.late,\n"
	"   delayed = delayed + lanes.late WHERE id = lanes.id;\n"
	"  IF lanes.names IS NOT NULL THEN\n"
	"   PERFORM baton.settle(lanes.id, lanes.names, lanes.n);\n"
	"  END IF;\n"
	" END LOOP;\n"
	"END $$;\n"
	/* A renewal leaves the key of a lease's row alone, and so does not wait for who is
	 * admitted; whoever gives it another fence locks all of it first. */
	"CREATE FUNCTION baton.admit(subject text, fence bigint) RETURNS void\n"
	" LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$\n"
	"BEGIN\n"
	" PERFORM 1 FROM baton.lease l WHERE l.subject = admit.subject AND l.fence = admit.fence\n"
	"  AND l.held FOR KEY SHARE;\n"
	" IF NOT FOUND THEN\n"
	"  RAISE EXCEPTION '% is not held under fence %', quote_literal(subject), fence\n"
	"   USING ERRCODE = 'BT002';\n"
	" END IF;\n"
	"END $$;\n"
	"CREATE FUNCTION baton.guard(subjects text[]) RETURNS void LANGUAGE plpgsql AS $$\n"
	"BEGIN\n"
	" IF (SELECT count(*) FROM (SELECT 1 FROM baton.lease WHERE subject = ANY(subjects)\n"
	"   FOR UPDATE SKIP LOCKED) x) < cardinality(subjects) THEN\n"
	"  RAISE EXCEPTION 'somebody was admitted under the fence before'\n"
	"   USING ERRCODE = 'BT004';\n"
	" END IF;\n"
	"END $$;\n"
	"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;\n"
	"DO $$ BEGIN\n"
	" IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',\n"
	"   'baton_operator')) = 3 THEN\n"
	"  GRANT SELECT, INSERT, UPDATE, DELETE ON baton.sleeper TO baton_runner, baton_operator;\n"
	"  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;\n"
	" END IF;\n"
	"END $$;\n",
};
#define VERSION ((int)(sizeof steps / sizeof steps[0]))

/* Where a store is: another one than it was after a copy was brought back, and the part before the
 * slash is the same after a standby has taken over. Behind it is the timeline, of which
 * pg_control_checkpoint() knows only some time after a promotion. */
#define PLACE                                                                         \
	"(SELECT system_identifier FROM pg_control_system()) || '.' || "              \
	"(SELECT oid FROM pg_database WHERE datname = current_database()) || '.' || " \
	"'baton.state'::regclass::oid || '/' || "                                     \
	"CASE WHEN pg_is_in_recovery() THEN "                                         \
	"(SELECT timeline_id FROM pg_control_checkpoint()) "                          \
	"ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END"

const char *baton_store_tables(int to)
{
	return to >= 1 && to <= VERSION ? steps[to - 1] : NULL;
}

/* *ret_version 0: there is no store in this database. */
static enum baton_err look(struct conn *c, int *ret_version)
{
	char text[32];
	*ret_version = 0;
	enum baton_err e = conn_ask(c, "SELECT count(*) FROM pg_namespace WHERE nspname = 'baton'",
	                            text, sizeof text);
	if (e != BATON_OK || strcmp(text, "0") == 0)
		return e;
	e = conn_ask(c, "SELECT to_regclass('baton.state') IS NOT NULL", text, sizeof text);
	if (e == BATON_OK && strcmp(text, "t") != 0)
		e = fail(BATON_INVALID,
		         "store %s has a schema \"baton\" that is another program's: another "
		         "database has to be used",
		         c->where);
	int64_t version = 0;
	if (e == BATON_OK)
		e = conn_number(c, "SELECT version FROM baton.state", &version);
	if (e != BATON_OK)
		return e;
	if (version < 1 || version > VERSION)
		return fail(BATON_INVALID,
		            "store %s has version %lld of its tables, and this program knows them "
		            "up to %d: a newer baton has to open it",
		            c->where, (long long)version, VERSION);
	*ret_version = (int)version;
	return BATON_OK;
}

static enum baton_err first_row(struct conn *c, int64_t now_ms)
{
	char text[600];
	snprintf(text, sizeof text,
	         "INSERT INTO baton.state SELECT 1, %d, decode(md5(random()::text || "
	         "clock_timestamp()::text || pg_backend_pid()), 'hex'), %lld, 0, " PLACE,
	         VERSION, (long long)now_ms);
	return conn_exec(c, text);
}

static enum baton_err take_steps(struct conn *c, int version, int64_t now_ms)
{
	char text[80];
	enum baton_err e = BATON_OK;
	for (int i = version; i < VERSION && e == BATON_OK; i++)
		e = conn_exec(c, steps[i]);
	if (e == BATON_OK && version == 0)
		e = first_row(c, now_ms);
	snprintf(text, sizeof text, "UPDATE baton.state SET version = %d", VERSION);
	return e == BATON_OK && version > 0 && version < VERSION ? conn_exec(c, text) : e;
}

/* After a copy was brought back, or a standby has taken over, fences that were handed out may not
 * be known here: the next ones are above them. In a copy all that was held has ended. */
static enum baton_err begin_anew(struct conn *c, int64_t now_ms)
{
	char text[2400];
	snprintf(text, sizeof text,
	         "UPDATE baton.lease SET held = false, runner = NULL WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM baton.state);"
	         "UPDATE baton.claim SET token = decode(md5(random()::text || head), 'hex'), "
	         "expires_at = least(expires_at, %lld) WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM baton.state);"
	         "DELETE FROM baton.runner WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM baton.state);",
	         (long long)now_ms);
	enum baton_err e = conn_exec(c, text);
	snprintf(text, sizeof text,
	         "UPDATE baton.state SET place = " PLACE ", made = greatest(made, %lld)",
	         (long long)now_ms);
	return e == BATON_OK ? conn_exec(c, text) : e;
}

static enum baton_err is_moved(struct conn *c, bool *ret)
{
	char text[8];
	enum baton_err e =
		conn_ask(c, "SELECT place <> " PLACE " FROM baton.state", text, sizeof text);
	*ret = e == BATON_OK && strcmp(text, "t") == 0;
	return e;
}

static enum baton_err change(struct conn *c, int64_t now_ms)
{
	int version;
	bool moved = false;
	enum baton_err e = conn_exec(c, "BEGIN; SELECT pg_advisory_xact_lock(1650553967, -1)");
	if (e == BATON_OK)
		e = look(c, &version);
	if (e == BATON_OK)
		e = take_steps(c, version, now_ms);
	if (e == BATON_OK)
		e = is_moved(c, &moved);
	if (e == BATON_OK && moved)
		e = begin_anew(c, now_ms);
	if (e == BATON_OK)
		return conn_exec(c, "COMMIT");
	PQclear(PQexec(c->pg, "ROLLBACK"));
	return e;
}

enum baton_err pg_schema_open(struct conn *c, bool existing, int64_t now_ms)
{
	int version;
	bool moved = false;
	enum baton_err e = look(c, &version);
	if (e == BATON_OK && version == 0 && existing)
		return fail(BATON_NOT_FOUND, "there is no store in the database %s", c->where);
	if (e == BATON_OK && version == VERSION)
		e = is_moved(c, &moved);
	if (e != BATON_OK || (version == VERSION && !moved))
		return e;
	return change(c, now_ms);
}

enum baton_err pg_schema_arrive(struct conn *c)
{
	bool moved = false;
	int64_t now_ms = 0;
	enum baton_err e = is_moved(c, &moved);
	if (e != BATON_OK || !moved)
		return e;
	e = conn_number(c, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
	                &now_ms);
	return e == BATON_OK ? change(c, now_ms) : e;
}
