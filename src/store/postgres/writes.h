/* The statements that write what calls have changed. */
#ifndef POSTGRES_WRITES_H
#define POSTGRES_WRITES_H

#include "store/postgres/parts.h"

#define SQL_WRITES(X)                                                                              \
	X(BULK_ADD,                                                                                \
	  "WITH n AS (SELECT " PART_QUEUE_OF " AS queue, u.pool, u.rank FROM "                     \
	  "unnest($11::int[], $12::text[], $13::int[], $14::smallint[]) u(queue, name, pool, "     \
	  "rank)), "                                                                               \
	  "m AS (INSERT INTO baton.mark(queue, pool, rank, seq) SELECT n.queue, n.pool, n.rank, "  \
	  "0::bigint FROM n WHERE (SELECT k.seq FROM baton.mark k WHERE k.queue = n.queue "        \
	  "AND k.pool = n.pool AND k.rank = n.rank ORDER BY k.seq DESC LIMIT 1) IS NULL) "         \
	  "INSERT INTO baton.bulk(first, last, has, put_at, queue, pool, rank, n, flags, "         \
	  "payload, keys) "                                                                        \
	  "SELECT u.first, u.last, u.has, u.put_at, " PART_QUEUE_OF ", u.pool, u.rank, u.n, "      \
	  "u.flags, u.payload, CASE WHEN u.b > 0 THEN ($18::text[])[u.a:u.b] END "                 \
	  "FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "                   \
	  "$5::int[], $6::text[], $7::int[], $8::smallint[], $9::smallint[], $10::smallint[], "    \
	  "$15::bytea[], $16::int[], $17::int[]) u(first, last, has, put_at, queue, name, pool, "  \
	  "rank, n, flags, payload, a, b)")                                                        \
	X(ALONE,                                                                                   \
	  "SELECT baton.alone(x.queue, array_agg(x.line), $4::bigint) FROM (SELECT " PART_QUEUE_OF \
	  " AS queue, u.line FROM unnest($1::int[], $2::text[], $3::text[]) "                      \
	  "u(queue, name, line)) x GROUP BY x.queue ORDER BY x.queue")                             \
	X(ALONE_ONE, "SELECT baton.alone($1::bigint::int, $2::text[], $3::bigint)")                \
	X(THAW, "SELECT baton.thaw(q.id, w.lines) FROM (SELECT name, array_agg(line) AS lines "    \
	        "FROM unnest($1::text[], $2::text[]) u(name, line) GROUP BY name) w "              \
	        "JOIN baton.queue q ON q.name = w.name ORDER BY q.id")                             \
	X(MELT_KEYS, "SELECT baton.melt(ARRAY(SELECT b.first FROM baton.bulk b WHERE b.queue "     \
	             "IN (SELECT q.id FROM baton.queue q WHERE q.name = ANY($1::text[])) "         \
	             "AND b.keys IS NOT NULL ORDER BY b.queue, b.first))")                         \
	X(MARK_SET, "WITH n AS (SELECT * FROM unnest($1::int[], $2::int[], $3::smallint[], "       \
	            "$4::bigint[], $5::bigint[]) n(queue, pool, rank, old, seq)), "                \
	            "d AS (DELETE FROM baton.mark m USING n WHERE m.queue = n.queue "              \
	            "AND m.pool = n.pool AND m.rank = n.rank AND m.seq = n.old) "                  \
	            "INSERT INTO baton.mark(queue, pool, rank, seq) SELECT queue, pool, rank, "    \
	            "seq FROM n")                                                                  \
	X(MARK_SET_ONE,                                                                            \
	  "WITH d AS (DELETE FROM baton.mark m WHERE m.queue = $1::bigint::int "                   \
	  "AND m.pool = $2::bigint::int AND m.rank = $3::bigint::smallint AND m.seq = "            \
	  "$4::bigint) "                                                                           \
	  "INSERT INTO baton.mark(queue, pool, rank, seq) VALUES($1::bigint::int, "                \
	  "$2::bigint::int, "                                                                      \
	  "$3::bigint::smallint, $5::bigint)")                                                     \
	X(CHUNK_ADD,                                                                               \
	  "INSERT INTO baton.chunk(first, granter, claimed_at, expires_at, queue, owner, heads, "  \
	  "fences, tokens) SELECT u.first, u.granter, u.claimed_at, u.expires_at, u.queue, "       \
	  "u.owner, "                                                                              \
	  "($10::bigint[])[u.a:u.b], ($11::bigint[])[u.a:u.b], u.tokens FROM "                     \
	  "unnest($1::bigint[], "                                                                  \
	  "$2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::text[], $7::int[], "           \
	  "$8::int[], "                                                                            \
	  "$9::bytea[]) u(first, granter, claimed_at, expires_at, queue, owner, a, b, tokens)")    \
	X(CHUNK_SET,                                                                               \
	  "UPDATE baton.chunk c SET heads = ($6::bigint[])[u.a:u.b], fences = "                    \
	  "($7::bigint[])[u.a:u.b], "                                                              \
	  "tokens = u.tokens FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], "       \
	  "$5::bytea[]) u(first, id, a, b, tokens) WHERE c.first = u.first AND c.id = u.id")       \
	X(CHUNK_DROP, "WITH d AS (DELETE FROM baton.chunk c WHERE c.ctid = ANY($1::tid[]) "        \
	              "AND c.first + 0 = ANY($3::bigint[])), "                                     \
	              "b AS (DELETE FROM baton.bulk b WHERE b.ctid = ANY($2::tid[]) "              \
	              "AND b.first + 0 = ANY($3::bigint[]) "                                       \
	              "AND NOT EXISTS (SELECT 1 FROM baton.chunk c WHERE c.first = b.first "       \
	              "AND c.ctid <> ALL($1::tid[]) OFFSET 0) "                                    \
	              "AND b.last <= (SELECT m.seq FROM baton.mark m WHERE m.queue = b.queue "     \
	              "AND m.pool = b.pool AND m.rank = b.rank ORDER BY m.seq DESC LIMIT 1) "      \
	              "RETURNING b.queue, b.first, b.keys) SELECT baton.leave(b.queue, b.first, "  \
	              "b.keys) FROM b WHERE b.keys IS NOT NULL")                                   \
	X(REPLY_ADD,                                                                               \
	  "INSERT INTO baton.reply(base, until, state, heads, fences, tokens) SELECT u.base, "     \
	  "u.until, "                                                                              \
	  "u.state, ($7::bigint[])[u.a:u.b], ($8::bigint[])[u.a:u.b], u.tokens FROM "              \
	  "unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::int[], $5::int[], "              \
	  "$6::bytea[]) "                                                                          \
	  "u(base, until, state, a, b, tokens)")                                                   \
	X(DRAW_EXPECTED,                                                                           \
	  "SELECT CASE WHEN min(x.n) <> $1::bigint OR max(x.n) <> $1::bigint + $2::bigint - 1 "    \
	  "THEN baton.draw(0, 1) END FROM (SELECT nextval('baton.seq') AS n "                      \
	  "FROM generate_series(1, $2::bigint)) x")                                                \
	X(COUNTER_SET, "WITH n AS (SELECT * FROM unnest($1::text[], $2::bigint[], "                \
	               "$3::bigint[], $4::bigint[]) n(subject, fence, old, new)), "                \
	               "d AS (DELETE FROM baton.counter k USING n WHERE k.subject = n.subject "    \
	               "AND k.fence = n.fence AND k.n = n.old), "                                  \
	               "e AS (DELETE FROM baton.counter k USING n WHERE n.old = 0 "                \
	               "AND k.subject = n.subject AND k.fence < n.fence) "                         \
	               "INSERT INTO baton.counter SELECT subject, fence, new FROM n")              \
	X(COUNTER_SET_ONE, "WITH d AS (DELETE FROM baton.counter k WHERE k.subject = $1::text "    \
	                   "AND k.fence = $2::bigint AND k.n = $3::bigint) "                       \
	                   "INSERT INTO baton.counter VALUES($1::text, $2::bigint, $4::bigint)")   \
	X(RAISE, "SELECT baton.raise(f.queue, f.pool, f.rank) FROM unnest($1::int[], $2::int[], "  \
	         "$3::int[]) f(queue, pool, rank)")                                                \
	X(GATHER, "SELECT baton.gather(q.id) FROM baton.queue q "                                  \
	          "WHERE q.name = ANY($1::text[]) AND q.mixed")                                    \
	X(QUEUE_ADD, "INSERT INTO baton.queue(name, stripe, mode, shards, paused, payload_max, "   \
	             "waiting_max, attempts, backoff, base, cap, lane_attempts, lane_backoff, "    \
	             "lane_base, lane_cap, on_retry, on_dead, dedupe, keep, ready, delayed, "      \
	             "retrying, claimed, dead, kept, done, failed, key_limit, hold_on_retry, "     \
	             "on_conflict, key_waiting_max, key_fair, key_starts, key_window, key_ttl, "   \
	             "guests, key_scope, key_class) "                                              \
	             "VALUES($1::text, "                                                           \
	             "$2::bigint::int, $3::bigint, $4::bigint, $5::bool, $6::bigint, "             \
	             "$7::bigint, "                                                                \
	             "$8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint, "             \
	             "$13::bigint, $14::bigint, $15::bigint, $16::bigint, $17::bigint, "           \
	             "$18::bigint, $19::bigint, $20::bigint, $21::bigint, $22::bigint, "           \
	             "$23::bigint, $24::bigint, $25::bigint, $26::bigint, $27::bigint, "           \
	             "$28::bigint, $29::bigint, $30::bigint, $31::bigint, $32::bigint, "           \
	             "$33::bigint, $34::bigint, $35::bigint, $36::bool, $37::bigint, "             \
	             "$38::text) "                                                                 \
	             "RETURNING id")                                                               \
	X(QUEUE_SET, "UPDATE baton.queue SET mixed = mixed OR (mode = 4) <> ($3::bigint = 4), "    \
	             "stripe = $2::bigint::int, shards = $4::bigint, mode = $3::bigint, "          \
	             "paused = $5::bool, payload_max = $6::bigint, "                               \
	             "waiting_max = $7::bigint, attempts = $8::bigint, backoff = $9::bigint, "     \
	             "base = $10::bigint, cap = $11::bigint, lane_attempts = $12::bigint, "        \
	             "lane_backoff = $13::bigint, lane_base = $14::bigint, "                       \
	             "lane_cap = $15::bigint, on_retry = $16::bigint, on_dead = $17::bigint, "     \
	             "dedupe = $18::bigint, keep = $19::bigint, key_limit = $20::bigint, "         \
	             "hold_on_retry = $21::bigint, on_conflict = $22::bigint, "                    \
	             "key_waiting_max = $23::bigint, key_fair = $24::bigint, "                     \
	             "key_starts = $25::bigint, key_window = $26::bigint, key_ttl = $27::bigint, " \
	             "guests = $28::bool, key_scope = $29::bigint, key_class = $30::text "         \
	             "WHERE name = $1::text")                                                      \
	X(QUEUE_COUNT,                                                                             \
	  "WITH d AS (SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], "                \
	  "$4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], "                 \
	  "$9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]) d(id, ready, "               \
	  "delayed, retrying, claimed, dead, kept, done, failed, top, floor, "                     \
	  "tended)), "                                                                             \
	  "o AS MATERIALIZED (SELECT y.* FROM d CROSS JOIN LATERAL (SELECT *, y.ctid AS at "       \
	  "FROM baton.tally y WHERE y.queue = d.id ORDER BY y.n DESC LIMIT 1) y), "                \
	  "x AS (DELETE FROM baton.tally t WHERE t.ctid = ANY(ARRAY(SELECT o.at "                  \
	  "FROM o))) INSERT INTO baton.tally(queue, n, ready, delayed, "                           \
	  "retrying, claimed, dead, kept, done, failed, top, floor, tended, waiting) "             \
	  "SELECT d.id, "                                                                          \
	  "coalesce(o.n, 0) + 1, coalesce(o.ready, 0) + d.ready, "                                 \
	  "coalesce(o.delayed, 0) + d.delayed, "                                                   \
	  "coalesce(o.retrying, 0) + d.retrying, "                                                 \
	  "coalesce(o.claimed, 0) + d.claimed, coalesce(o.dead, 0) + d.dead, "                     \
	  "coalesce(o.kept, 0) + d.kept, coalesce(o.done, 0) + d.done, "                           \
	  "coalesce(o.failed, 0) + d.failed, d.top, d.floor, d.tended, coalesce(o.waiting, 0) "    \
	  "FROM d LEFT JOIN o ON o.queue = d.id")                                                  \
	X(QUEUE_COUNT_ONE,                                                                         \
	  "WITH o AS (DELETE FROM baton.tally t WHERE t.queue = $1::bigint::int AND t.n = "        \
	  "$2::bigint "                                                                            \
	  "RETURNING *) INSERT INTO baton.tally(queue, n, ready, delayed, retrying, claimed, "     \
	  "dead, "                                                                                 \
	  "kept, done, failed, top, floor, tended, waiting) "                                      \
	  "SELECT $1::bigint::int, $2::bigint + 1, "                                               \
	  "coalesce(o.ready, 0) + $3::bigint, coalesce(o.delayed, 0) + $4::bigint, "               \
	  "coalesce(o.retrying, 0) + $5::bigint, coalesce(o.claimed, 0) + $6::bigint, "            \
	  "coalesce(o.dead, 0) + $7::bigint, coalesce(o.kept, 0) + $8::bigint, "                   \
	  "coalesce(o.done, 0) + $9::bigint, coalesce(o.failed, 0) + $10::bigint, "                \
	  "$11::bigint, $12::bigint, $13::bigint, coalesce(o.waiting, 0) "                         \
	  "FROM (SELECT 1) x LEFT JOIN o ON true "                                                 \
	  "RETURNING " XID_COLUMNS)                                                                \
	X(QUEUE_COUNT_SURE,                                                                        \
	  "WITH o AS (DELETE FROM baton.tally t WHERE t.queue = $1::bigint::int AND t.n = "        \
	  "$2::bigint "                                                                            \
	  "AND t.tended = $14::bigint RETURNING *) INSERT INTO baton.tally(queue, n, ready, "      \
	  "delayed, "                                                                              \
	  "retrying, claimed, dead, kept, done, failed, top, floor, tended, waiting) SELECT "      \
	  "$1::bigint::int, "                                                                      \
	  "$2::bigint + 1, o.ready + $3::bigint, o.delayed + $4::bigint, o.retrying + "            \
	  "$5::bigint, "                                                                           \
	  "o.claimed + $6::bigint, o.dead + $7::bigint, o.kept + $8::bigint, o.done + "            \
	  "$9::bigint, "                                                                           \
	  "o.failed + $10::bigint, $11::bigint, $12::bigint, CASE WHEN o.n IS NULL OR q.id IS "    \
	  "NULL "                                                                                  \
	  "OR s.version <> $16::bigint "                                                           \
	  "OR z.last_value - CASE WHEN z.is_called THEN 0 ELSE 1 END <> $17::bigint "              \
	  "THEN baton.stale() ELSE $13::bigint END, o.waiting "                                    \
	  "FROM baton.state s CROSS JOIN baton.seq z LEFT JOIN o ON true LEFT JOIN "               \
	  "baton.queue q ON q.id = "                                                               \
	  "$1::bigint::int "                                                                       \
	  "AND q.xmin::text::bigint = $15::bigint RETURNING " XID_COLUMNS)                         \
	X(BATCH_ADD, "INSERT INTO baton.batch(seq, queue, lane, shard, pool, head, line, state, "  \
	             "rank, flags, put_at, due, grp, retry, attempts, fence, cancel, holds, "      \
	             "blocks, error, payload, ended_at, until, rival, guest, keeps) "              \
	             "SELECT u.seq, q.id, u.lane, u.shard, "                                       \
	             "CASE WHEN q.mode = 4 THEN u.shard + 1 ELSE 0 END, u.head, u.line, "          \
	             "u.state, u.rank, u.flags, u.put_at, u.due, u.grp, u.retry, u.attempts, "     \
	             "u.fence, u.cancel, u.holds, u.blocks, u.error, u.payload, u.ended_at, "      \
	             "u.until, u.rival, u.guest, u.keeps FROM "                                    \
	             "unnest($1::bigint[], $2::text[], $3::text[], $4::int[], $5::bool[], "        \
	             "$6::bool[], $7::smallint[], $8::smallint[], $9::smallint[], "                \
	             "$10::bigint[], $11::bigint[], $12::text[], $13::bytea[], $14::int[], "       \
	             "$15::bigint[], $16::bool[], $17::bool[], $18::bool[], $19::bytea[], "        \
	             "$20::bytea[], $21::bigint[], $22::bigint[], $23::bigint[], $24::text[], "    \
	             "$25::bool[]) "                                                               \
	             "u(seq, queue, lane, shard, head, line, state, rank, flags, "                 \
	             "put_at, due, grp, retry, attempts, fence, cancel, holds, blocks, error, "    \
	             "payload, ended_at, until, rival, guest, keeps) "                             \
	             "JOIN baton.queue q ON q.name = u.queue")                                     \
	X(BATCH_SET, "UPDATE baton.batch b SET seq = u.new, born = CASE WHEN u.new = b.seq "       \
	             "THEN b.born ELSE coalesce(b.born, b.seq) END, pool = u.pool, "               \
	             "head = u.head, line = u.line, state = u.state, due = u.due, "                \
	             "attempts = u.attempts, fence = u.fence, cancel = u.cancel, "                 \
	             "holds = u.holds, blocks = u.blocks, error = u.error, result = u.result, "    \
	             "ended_at = u.ended_at, until = u.until, rival = u.rival, keeps = u.keeps, "  \
	             "asks = false, place = CASE WHEN u.head THEN b.place END "                    \
	             "FROM (SELECT u.*, x.at FROM unnest($1::bigint[], "                           \
	             "$2::bigint[], $3::int[], $4::bool[], $5::bool[], $6::smallint[], "           \
	             "$7::bigint[], $8::int[], $9::bigint[], $10::bool[], $11::bool[], "           \
	             "$12::bool[], $13::bytea[], $14::bytea[], $15::bigint[], $16::bigint[], "     \
	             "$17::bigint[], $18::bool[]) "                                                \
	             "u(old, new, pool, head, line, state, due, attempts, fence, cancel, holds, "  \
	             "blocks, error, result, ended_at, until, rival, keeps) "                      \
	             "CROSS JOIN LATERAL (SELECT y.ctid AS at FROM baton.batch y "                 \
	             "WHERE y.seq = u.old OFFSET 0) x) u WHERE b.ctid = u.at")                     \
	X(BATCH_DROP, "DELETE FROM baton.batch WHERE seq = ANY($1::bigint[])")                     \
	X(CLAIM_ADD, "INSERT INTO baton.claim(head, fence, token, owner, queue, lane, granter, "   \
	             "claimed_at, expires_at, offered, seqs, guest) SELECT u.head, u.fence, "      \
	             "u.token, "                                                                   \
	             "u.owner, q.id, u.lane, u.granter, u.claimed_at, u.expires_at, u.offered, "   \
	             "u.seqs::bigint[], u.guest FROM unnest($1::bigint[], $2::bigint[], "          \
	             "$3::bytea[], "                                                               \
	             "$4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], "            \
	             "$9::bigint[], $10::bool[], $11::text[], $12::text[]) u(head, fence, token, " \
	             "owner, queue, lane, granter, claimed_at, expires_at, offered, seqs, guest) " \
	             "JOIN baton.queue q ON q.name = u.queue")                                     \
	X(CLAIM_SET,                                                                               \
	  "UPDATE baton.claim c SET expires_at = u.expires_at, offered = u.offered, "              \
	  "seqs = u.seqs::bigint[] FROM (SELECT u.*, x.at FROM unnest($1::bigint[], "              \
	  "$2::bigint[], $3::bigint[], $4::bool[], $5::text[]) "                                   \
	  "u(head, fence, expires_at, offered, seqs) CROSS JOIN LATERAL (SELECT y.ctid AS at "     \
	  "FROM baton.claim y WHERE y.head = u.head AND y.fence = u.fence OFFSET 0) x) u "         \
	  "WHERE c.ctid = u.at")                                                                   \
	X(CLAIM_DROP,                                                                              \
	  "DELETE FROM baton.claim c WHERE c.ctid = ANY(ARRAY(SELECT x.at FROM "                   \
	  "unnest($1::bigint[], $2::bigint[]) u(head, fence) CROSS JOIN LATERAL ("                 \
	  "SELECT y.ctid AS at FROM baton.claim y WHERE y.head = u.head AND y.fence = u.fence "    \
	  "OFFSET 0) x))")                                                                         \
	X(SOURCE_SET, "INSERT INTO baton.source(key, content, id, until) SELECT * FROM "           \
	              "unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[]) "              \
	              "ON CONFLICT (key) DO UPDATE SET content = excluded.content, "               \
	              "id = excluded.id, until = excluded.until")                                  \
	X(LEASE_SET, "INSERT INTO baton.lease(" LEASE_COLUMNS ") SELECT * FROM "                   \
	             "unnest($1::text[], $2::bool[], $3::text[], $4::bytea[], $5::bytea[], "       \
	             "$6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[]) "     \
	             "ON CONFLICT (subject) DO UPDATE SET held = excluded.held, "                  \
	             "owner = excluded.owner, token = excluded.token, nonce = excluded.nonce, "    \
	             "fence = excluded.fence, counter = excluded.counter, "                        \
	             "claimed_at = excluded.claimed_at, expires_at = excluded.expires_at, "        \
	             "runner = excluded.runner")                                                   \
	X(GUARD, "SELECT baton.guard($1::text[])")                                                 \
	X(SETTLE, "SELECT baton.settle(q.id, w.lanes, $3::bigint) FROM (SELECT name, "             \
	          "array_agg(lane) AS lanes FROM unnest($1::text[], $2::text[]) u(name, lane) "    \
	          "GROUP BY name) w JOIN baton.queue q ON q.name = w.name")                        \
	X(SETTLE_FAIR, "SELECT baton.settle_fair(q.id) FROM baton.queue q "                        \
	               "WHERE q.name = ANY($1::text[])")                                           \
	X(PACE_SET, "INSERT INTO baton.pace(queue, lane, turn) SELECT q.id, u.lane, u.turn FROM "  \
	            "unnest($1::text[], $2::text[], $3::bigint[]) u(name, lane, turn) "            \
	            "JOIN baton.queue q ON q.name = u.name ON CONFLICT (queue, lane) "             \
	            "DO UPDATE SET turn = greatest(pace.turn, excluded.turn)")                     \
	X(RATE_SET, "INSERT INTO baton.rate(queue, lane, until, over, starts) SELECT q.id, "       \
	            "u.lane, u.until, u.over, u.starts::bigint[] FROM unnest($1::text[], "         \
	            "$2::text[], $3::bigint[], $4::bigint[], $5::text[]) u(name, lane, until, "    \
	            "over, starts) JOIN baton.queue q ON q.name = u.name "                         \
	            "ON CONFLICT (queue, lane) DO UPDATE SET until = excluded.until, "             \
	            "over = excluded.over, starts = excluded.starts")                              \
	X(RATE_GATHER, "DELETE FROM baton.rate r USING unnest($1::text[], $2::text[]) "            \
	               "u(name, lane) JOIN baton.queue q ON q.name = u.name JOIN baton.queue m "   \
	               "ON m.key_class = q.key_class AND m.key_class <> '' AND m.id <> q.id "      \
	               "WHERE r.queue = m.id AND r.lane = u.lane")                                 \
	X(SETTLE_RATE, "SELECT baton.settle_rate(q.id, u.was, $3::bigint) FROM "                   \
	               "unnest($1::text[], $2::bigint[]) u(name, was) "                            \
	               "JOIN baton.queue q ON q.name = u.name")                                    \
	X(PACE_LEAVE, "SELECT baton.pace_leave(q.id, w.lanes) FROM (SELECT name, "                 \
	              "array_agg(lane) AS lanes FROM unnest($1::text[], $2::text[]) "              \
	              "u(name, lane) GROUP BY name) w JOIN baton.queue q ON q.name = w.name")      \
	X(SETTLE_LIMIT, "SELECT baton.settle_limit(q.id) FROM baton.queue q "                      \
	                "WHERE q.name = ANY($1::text[])")                                          \
	X(SCHEDULE_SET, "INSERT INTO baton.schedule(" SCHEDULE_COLUMNS ") VALUES($1::text, "       \
	                "$2::text, $3::text, $4::bigint, $5::text, $6::text, $7::bigint, "         \
	                "$8::bytea, $9::bigint, $10::bigint) ON CONFLICT (name) DO UPDATE SET "    \
	                "cron = excluded.cron, zone = excluded.zone, missed = excluded.missed, "   \
	                "queue = excluded.queue, lane = excluded.lane, "                           \
	                "priority = excluded.priority, payload = excluded.payload, "               \
	                "last = excluded.last, next = excluded.next")                              \
	X(SCHEDULE_DROP, "DELETE FROM baton.schedule WHERE name = ANY($1::text[])")                \
	X(RUNNER_ADD, "INSERT INTO baton.runner(" RUNNER_COLUMNS ") VALUES($1::bigint, "           \
	              "$2::text, $3::bigint, $4::text, $5::text, $6::text, $7::bigint, "           \
	              "$8::bigint, $9::bigint, $10::bigint, $11::text, $12::text, $13::text, "     \
	              "$14::bigint, $15::bigint, $16::text)")                                      \
	X(RUNNER_LAST, "UPDATE baton.state SET runner = $1::bigint")                               \
	X(RUNNER_DROP, "WITH d AS (DELETE FROM baton.runner WHERE number = ANY($1::bigint[]) "     \
	               "RETURNING owner) SELECT baton.rate_forget(d.owner) FROM d")                \
	X(RING, "UPDATE baton.state SET rung = rung + 1")

#endif
