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
	" place text NOT NULL);\n"
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
	"CREATE INDEX answer_until ON baton.answer(until);\n"
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
	" ttl bigint NOT NULL, since bigint NOT NULL, beat bigint NOT NULL)\n"
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
	"   AND NOT EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = of AND c.lane = x.lane\n"
	"    AND NOT c.offered) AS free\n"
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
	"DECLARE n bigint; total bigint := 0;\n"
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
	" DELETE FROM baton.answer WHERE (head, fence) IN (SELECT head, fence FROM baton.answer\n"
	"  WHERE until <= now_ms ORDER BY until LIMIT most - total FOR UPDATE SKIP LOCKED);\n"
	" GET DIAGNOSTICS n = ROW_COUNT;\n"
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
};
#define VERSION ((int)(sizeof steps / sizeof steps[0]))

/* Where a store is: another one than it was after a copy was brought back, and the part before the
 * slash is the same after a standby has taken over. */
#define PLACE                                                                         \
	"(SELECT system_identifier FROM pg_control_system()) || '.' || "              \
	"(SELECT oid FROM pg_database WHERE datname = current_database()) || '.' || " \
	"'baton.state'::regclass::oid || '/' || "                                     \
	"(SELECT timeline_id FROM pg_control_checkpoint())"

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
	if (e == BATON_OK)
		e = conn_ask(c, "SELECT version FROM baton.state", text, sizeof text);
	if (e != BATON_OK)
		return e;
	*ret_version = atoi(text);
	if (*ret_version < 1 || *ret_version > VERSION)
		return fail(BATON_INVALID,
		            "store %s has version %d of its tables, and this program knows them up "
		            "to %d: a newer baton has to open it",
		            c->where, *ret_version, VERSION);
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
