/* The statements that lock, and read what calls depend on. */
#ifndef POSTGRES_READS_H
#define POSTGRES_READS_H

#include "store/postgres/parts.h"

#define SQL_READS(X)                                                                               \
	X(BEGIN, "BEGIN ISOLATION LEVEL READ COMMITTED")                                           \
	X(BEGIN_USUAL, "BEGIN")                                                                    \
	X(WISHES, "SELECT set_config('search_path', 'pg_catalog', true), "                         \
	          "set_config('client_min_messages', 'warning', true), "                           \
	          "set_config('lock_timeout', $1::text, true), "                                   \
	          "set_config('statement_timeout', $2::text, true), "                              \
	          "set_config('idle_in_transaction_session_timeout', '" IDLE_MS "', true), "       \
	          "set_config('enable_seqscan', 'off', true), "                                    \
	          "set_config('enable_hashjoin', 'off', true), "                                   \
	          "set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)")   \
	X(WITHIN, "SELECT set_config('statement_timeout', $1::text, true)")                        \
	X(DISCARD, "DISCARD PLANS")                                                                \
	X(BEGIN_READ, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")                           \
	X(COMMIT, "COMMIT")                                                                        \
	X(ROLLBACK, "ROLLBACK")                                                                    \
	X(RELAX, "SET LOCAL synchronous_commit = off")                                             \
	X(LOCK, PART_LOCK " UNION SELECT q.stripe FROM unnest($7::bigint[]) " PART_BULKS           \
	                  "JOIN baton.queue q ON q.id = b.queue UNION "                            \
	                  "SELECT q.stripe FROM unnest($7::bigint[]) n(id) JOIN baton.batch b "    \
	                  "ON b.seq = n.id AND b.born IS NULL JOIN baton.queue q "                 \
	                  "ON q.id = b.queue UNION "                                               \
	                  "SELECT q.stripe FROM unnest($7::bigint[]) n(id) JOIN baton.batch b "    \
	                  "ON b.born = n.id JOIN baton.queue q ON q.id = b.queue ORDER BY 1) x")   \
	X(LOCK_CLAIMS, PART_LOCK " ORDER BY 1) x")                                                 \
	X(LOCK_STRIPES, "SELECT pg_advisory_xact_lock(1650553967, s) FROM (SELECT DISTINCT s "     \
	                "FROM unnest($1::int[]) s ORDER BY s) x")                                  \
	X(LOCK_STRIPE, "SELECT pg_advisory_xact_lock(1650553967, $1::bigint::int)")                \
	X(LOCK_RUNNER, "SELECT pg_advisory_xact_lock(1650553967, stripe) FROM ("                   \
	               "SELECT q.stripe FROM baton.lease l JOIN baton.queue q "                    \
	               "ON q.name = split_part(l.subject, chr(1), 2) WHERE l.runner = "            \
	               "$1::bigint "                                                               \
	               "UNION SELECT q.stripe FROM baton.runner r JOIN baton.claim c "             \
	               "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "              \
	               "JOIN baton.queue q ON q.id = c.queue WHERE r.number = $1::bigint "         \
	               "UNION SELECT q.stripe FROM baton.runner r JOIN baton.chunk c "             \
	               "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "              \
	               "JOIN baton.queue q ON q.id = c.queue WHERE r.number = $1::bigint "         \
	               "ORDER BY 1) x")                                                            \
	X(MELT, "SELECT baton.melt(ARRAY(SELECT baton.bulk_of(n.id) FROM "                         \
	        "unnest($1::bigint[]) n(id) UNION SELECT c.first FROM baton.runner r "             \
	        "JOIN baton.chunk c ON c.owner = r.owner "                                         \
	        "AND c.expires_at = 9223372036854775807 WHERE r.number = $2::bigint "              \
	        "AND ($3::bool OR c.queue IN (SELECT q.id FROM baton.queue q "                     \
	        "WHERE q.name = ANY($4::text[])))))")                                              \
	X(CHUNKS,                                                                                  \
	  "SELECT c.id, c.first, c.queue, c.owner, c.granter, c.claimed_at, "                      \
	  "c.expires_at, c.heads, c.fences, c.tokens, b.rank, b.flags, b.put_at, c.at, b.at "      \
	  "FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) " PART_CHUNKS                     \
	  "CROSS JOIN LATERAL ("                                                                   \
	  "SELECT y.rank, y.flags, y.put_at, y.ctid AS at FROM baton.bulk y "                      \
	  "WHERE y.first = c.first OFFSET 0) b")                                                   \
	X(BULKS,                                                                                   \
	  "WITH RECURSIVE m AS (SELECT q.id, w.pool, w.few, k.rank, k.seq FROM "                   \
	  "unnest($1::text[], $2::int[], $3::int[]) w(name, pool, few) JOIN baton.queue q "        \
	  "ON q.name = w.name CROSS JOIN LATERAL (SELECT x.rank, x.seq FROM baton.mark x "         \
	  "WHERE x.queue = q.id AND x.pool = w.pool "                                              \
	  "ORDER BY x.rank DESC, x.seq DESC LIMIT 1) k UNION ALL "                                 \
	  "SELECT m.id, m.pool, m.few, k.rank, k.seq FROM m CROSS JOIN LATERAL (SELECT "           \
	  "x.rank, x.seq "                                                                         \
	  "FROM baton.mark x WHERE x.queue = m.id AND x.pool = m.pool AND x.rank < m.rank "        \
	  "ORDER BY x.rank DESC, x.seq DESC LIMIT 1) k), "                                         \
	  "b AS (SELECT x.first, x.last, x.queue, x.pool, x.rank, m.few, m.seq, "                  \
	  "CASE WHEN x.first > m.seq THEN x.n ELSE 0 END::bigint AS sum "                          \
	  "FROM m CROSS JOIN LATERAL (SELECT " PART_BULK                                           \
	  " FROM baton.bulk x WHERE x.queue = m.id "                                               \
	  "AND x.pool = m.pool AND x.rank = m.rank AND x.last > m.seq ORDER BY x.last LIMIT "      \
	  "1) x "                                                                                  \
	  "UNION ALL SELECT x.first, x.last, x.queue, x.pool, x.rank, b.few, b.seq, b.sum + x.n "  \
	  "FROM b CROSS JOIN LATERAL (SELECT " PART_BULK " "                                       \
	  "FROM baton.bulk x WHERE x.queue = b.queue AND x.pool = b.pool AND x.rank = b.rank "     \
	  "AND x.last > b.last ORDER BY x.last LIMIT 1) x "                                        \
	  "WHERE b.sum < b.few OR x.first < b.last) "                                              \
	  "SELECT o.first, o.last, o.queue, o.pool, o.rank, p.flags, p.put_at, o.seq, p.payload, " \
	  "p.keys "                                                                                \
	  "FROM (SELECT * FROM b ORDER BY rank, first) o CROSS JOIN LATERAL (SELECT y.flags, "     \
	  "y.put_at, y.payload, y.keys FROM baton.bulk y WHERE y.first = o.first OFFSET 0) p "     \
	  "ORDER BY o.rank, o.first")                                                              \
	X(HEADS_ANY, "SELECT EXISTS (SELECT 1 FROM unnest($1::text[], $2::int[]) w(name, pool) "   \
	             "JOIN baton.queue q ON q.name = w.name WHERE " PART_HAS_HEADS("w.pool") ")")  \
	X(CLAIM_LOOK,                                                                              \
	  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, m.now, " PART_DUE        \
	  ", " PART_HAS_HEADS("0") ", q.xmin, coalesce(t.n, 0), "                                  \
	                           "coalesce(t.tended, 0), s.version, " LEASE_COUNTED              \
	                           " FROM baton.state s "                                          \
	                           "CROSS JOIN " PART_NOW " m CROSS JOIN (" PART_QUEUES            \
	                           ") LEFT JOIN baton.lease l "                                    \
	                           "ON l.subject = $3::text WHERE q.id = $1::bigint::int")         \
	X(MEMBERS, "SELECT " BATCH_COLUMNS ", b.payload FROM unnest($1::bigint[]) n(id) "          \
	           "JOIN baton.member b ON b.first = baton.bulk_of(n.id) AND b.seq = n.id")        \
	X(MEMBER_CLAIMS, "SELECT " CLAIM_COLUMNS " FROM unnest($1::bigint[]) n(id) "               \
	                 "JOIN baton.item c ON c.first = baton.bulk_of(n.id) "                     \
	                 "AND c.head = n.id")                                                      \
	X(START, "SELECT " START_COLUMNS " FROM baton.state s, baton.seq z")                       \
	X(LOOK,                                                                                    \
	  "SELECT " QUEUE_COLUMNS ", " START_COLUMNS " " PART_LOOK "ON q.name = ANY($1::text[])")  \
	X(LOOK_NUMBERS,                                                                            \
	  "SELECT " QUEUE_COLUMNS ", " START_COLUMNS " " PART_LOOK "ON q.id = ANY($1::int[])")     \
	X(LOOK_CLASS, "SELECT " QUEUE_COLUMNS ", " START_COLUMNS " " PART_LOOK                     \
	              "ON q.name = ANY($1::text[]) OR (q.key_class <> '' AND q.key_class IN ("     \
	              "SELECT unnest($2::text[]) UNION SELECT x.key_class FROM baton.queue x "     \
	              "WHERE x.name = ANY($1::text[])))")                                          \
	X(CLASS_TEND, "SELECT baton.tend(x.id, x.now) FROM (SELECT DISTINCT m.id, n.now "          \
	              "FROM baton.queue q CROSS JOIN " PART_NOW " n JOIN baton.queue m ON "        \
	              "m.key_class = q.key_class AND m.key_class <> '' "                           \
	              "WHERE " PART_CLASS_ASKED " ORDER BY m.id) x")                               \
	X(CLASS_OVER, "SELECT DISTINCT c.head, c.fence FROM baton.queue q CROSS JOIN " PART_NOW    \
	              " n JOIN baton.queue m ON m.key_class = q.key_class AND m.key_class <> '' "  \
	              "CROSS JOIN LATERAL (SELECT x.head, x.fence FROM baton.claim x WHERE "       \
	              "x.queue = m.id AND NOT x.offered AND x.expires_at >= baton.since(m.id) "    \
	              "AND x.expires_at <= n.now AND baton.is_shared(x) "                          \
	              "ORDER BY x.expires_at LIMIT 1000) c WHERE " PART_CLASS_ASKED)               \
	X(CLASS_QUEUES, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES                               \
	                " WHERE q.key_class = ANY($1::text[]) AND q.key_class <> ''")              \
	X(CLASS_BATCHES,                                                                           \
	  PART_CLASS "SELECT " BATCH_COLUMNS ", NULL::bytea FROM (SELECT "                         \
	             "unnest(c.seqs) AS seq FROM k CROSS JOIN LATERAL " CLAIMS_OF_K                \
	             "UNION SELECT b.seq FROM k JOIN baton.batch b ON b.queue = k.queue "          \
	             "AND b.lane = k.line AND b.holds "                                            \
	             "UNION SELECT b.seq FROM k JOIN baton.batch b ON b.queue = k.queue "          \
	             "AND b.guest = k.line AND b.keeps "                                           \
	             "UNION SELECT h.seq FROM k JOIN baton.hold h ON h.queue = k.queue "           \
	             "AND h.line = k.line AND h.fence = 0) s CROSS JOIN LATERAL (SELECT * "        \
	             "FROM baton.batch z WHERE z.seq = s.seq OFFSET 0) b ORDER BY b.seq")          \
	X(RIVAL_BATCHES,                                                                           \
	  PART_CLASS "SELECT " BATCH_COLUMNS ", NULL::bytea FROM (SELECT unnest(c.seqs) AS seq "   \
	             "FROM k JOIN baton.claim c ON c.queue = k.queue AND c.lane = k.line "         \
	             "UNION SELECT b.seq FROM k JOIN baton.batch b ON b.queue = k.queue "          \
	             "AND b.lane = k.line AND b.holds "                                            \
	             "UNION SELECT x.seq FROM k CROSS JOIN LATERAL (SELECT b.seq "                 \
	             "FROM baton.batch b WHERE " LINE_OF_K "ORDER BY b.lane, b.seq "               \
	             "LIMIT $3::bigint) x "                                                        \
	             "UNION SELECT x.seq FROM k CROSS JOIN LATERAL (SELECT b.seq "                 \
	             "FROM baton.batch b WHERE " LINE_OF_K "ORDER BY b.lane DESC, b.seq DESC "     \
	             "LIMIT $3::bigint) x) s CROSS JOIN LATERAL (SELECT * "                        \
	             "FROM baton.batch z WHERE z.seq = s.seq OFFSET 0) b ORDER BY b.seq")          \
	X(RIVAL_CLAIMS, PART_CLASS "SELECT " CLAIM_COLUMNS " FROM k JOIN baton.claim c "           \
	                           "ON c.queue = k.queue AND c.lane = k.line "                     \
	                           "WHERE $3::bigint > 0")                                         \
	X(RIVAL_WAITING, PART_CLASS "SELECT k.queue, k.line, (SELECT count(*) FROM (SELECT 1 "     \
	                            "FROM baton.batch b WHERE " LINE_OF_K                          \
	                            "ORDER BY b.lane, b.seq LIMIT greatest(q.key_limit, "          \
	                            "q.key_waiting_max) + $3::bigint + 2) x), NULL::bigint, "      \
	                            "NULL::bigint[], NULL::bigint "                                \
	                            "FROM k JOIN baton.queue q ON q.id = k.queue")                 \
	X(CLASS_CLAIMS, PART_CLASS "SELECT DISTINCT ON (c.head, c.fence) " CLAIM_COLUMNS           \
	                           " FROM k CROSS JOIN LATERAL " CLAIMS_OF_K)                      \
	X(LOOK_DUE, "SELECT " QUEUE_COLUMNS ", " START_COLUMNS ", m.now, " PART_DUE " " PART_LOOK  \
	            "ON q.name = ANY($1::text[]) CROSS JOIN " PART_NOW " m")                       \
	X(DRAW, "SELECT nextval('baton.seq') FROM generate_series(1, $1::bigint + ("               \
	        "SELECT coalesce(sum(cardinality(c.seqs)), 0) FROM "                               \
	        "unnest($2::bigint[], $3::bigint[]) n(head, fence) CROSS JOIN LATERAL (SELECT * "  \
	        "FROM baton.claim x WHERE x.head = n.head AND x.fence = n.fence OFFSET 0) c "      \
	        "JOIN baton.queue q ON q.id = c.queue "                                            \
	        "WHERE q.hold_on_retry = 2 AND left(c.lane, 1) IN (chr(1), chr(2))) + ("           \
	        "SELECT coalesce(sum(w.few), 0) FROM unnest($4::text[], $5::int[]) w(name, few) "  \
	        "JOIN baton.queue q ON q.name = w.name WHERE q.key_fair = 2))")                    \
	X(TEND, "SELECT q.id, m.now, CASE WHEN q.paused THEN false "                               \
	        "WHEN " PART_IS_DUE " "                                                            \
	        "THEN baton.tend(q.id, m.now) ELSE true END FROM " PART_NOW " m, " PART_QUEUES " " \
	        "WHERE q.name = ANY($1::text[])")                                                  \
	X(QUEUES, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.id IN ("                  \
	          "SELECT id FROM baton.queue WHERE name = ANY($4::text[]) "                       \
	          "UNION SELECT queue FROM (" PART_NAMED_CLAIMS ") c "                             \
	          "UNION SELECT queue FROM (" PART_NAMED_BATCHES ") b "                            \
	          "UNION SELECT b.queue FROM unnest($3::bigint[]) " PART_BULKS " "                 \
	          "UNION SELECT c.queue FROM unnest($6::bigint[], $7::bigint[], $8::bigint[])  "   \
	          "" PART_CHUNKS " "                                                               \
	          "UNION SELECT b.queue FROM baton.source s JOIN baton.batch b "                   \
	          "ON b.seq = s.id OR b.born = s.id WHERE s.key = ANY($5::bytea[]))")              \
	X(SOURCES, "SELECT key, content, id, until FROM baton.source "                             \
	           "WHERE key = ANY($1::bytea[])")                                                 \
	X(AROUND,                                                                                  \
	  "WITH " PART_NAMED ", " PART_LANES_NAMED ", held AS MATERIALIZED ("                      \
	  "SELECT c FROM named UNION ALL "                                                         \
	  "SELECT c.c FROM lanes l CROSS JOIN LATERAL (SELECT x AS c FROM baton.claim x "          \
	  "WHERE " CLAIM_IS_OF_L "OFFSET 0) c UNION ALL "                                          \
	  "SELECT x.c FROM " PART_KEYS_NAMED PART_GUEST_CLAIMS "UNION ALL "                        \
	  "SELECT c.c FROM (" PART_NAMED_BATCHES ") b CROSS JOIN LATERAL (SELECT x AS c "          \
	  "FROM baton.claim x WHERE x.head = b.seq AND x.lane IS NULL OFFSET 0) c), " PART_SEQS    \
	  "SELECT seq FROM (" PART_NAMED_BATCHES ") b "                                            \
	  "UNION SELECT b.seq FROM baton.source s JOIN baton.batch b "                             \
	  "ON (b.seq = s.id AND b.born IS NULL) OR b.born = s.id "                                 \
	  "WHERE s.key = ANY($6::bytea[]) "                                                        \
	  "UNION SELECT x.seq FROM lanes l CROSS JOIN LATERAL (SELECT b.seq "                      \
	  "FROM baton.batch b WHERE " LINE_OF_L                                                    \
	  "AND b.state <> 4 ORDER BY b.lane, b.seq LIMIT l.n + 1) x "                              \
	  "UNION SELECT x.seq FROM lanes l CROSS JOIN LATERAL (SELECT b.seq "                      \
	  "FROM baton.batch b WHERE b.queue = l.queue AND b.lane = l.lane AND b.holds "            \
	  "ORDER BY b.seq LIMIT CASE WHEN baton.is_key(l.lane) THEN NULL "                         \
	  "ELSE l.n + 1 END) x "                                                                   \
	  "UNION SELECT x.seq FROM lanes l JOIN baton.queue q ON q.id = l.queue "                  \
	  "AND q.on_conflict > 1 CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b "             \
	  "WHERE b.queue = l.queue AND b.lane BETWEEN l.lane AND l.lane AND b.line "               \
	  "AND b.state = 1 ORDER BY b.lane DESC, b.seq DESC LIMIT l.n + 1) x "                     \
	  "WHERE baton.is_key(l.lane) "                                                            \
	  "UNION SELECT x.seq FROM " PART_KEYS_NAMED PART_GUESTS PART_SEQS_END " "                 \
	  "SELECT " BATCH_COLUMNS ", CASE WHEN $7::bool AND (b.seq = ANY($3::bigint[])"            \
	  " OR b.born = ANY($3::bigint[])) THEN b.payload END, NULL::bigint[], " HELD_COLUMNS      \
	  ", (SELECT baton.walked() - walk.n FROM walk) FROM s "                                   \
	  "CROSS JOIN LATERAL (SELECT * FROM baton.batch z WHERE z.seq = s.seq "                   \
	  "OFFSET 0) b ORDER BY b.seq")                                                            \
	X(WAITING, "WITH " PART_LANES " SELECT l.queue, l.lane, CASE WHEN q.key_scope = 3 "        \
	           "AND (q.on_conflict > 1 "                                                       \
	           "OR q.key_waiting_max > 0) THEN (SELECT count(*) FROM (SELECT 1 "               \
	           "FROM baton.batch b WHERE b.queue = l.queue AND b.lane BETWEEN l.lane AND "     \
	           "l.lane AND b.line AND b.state = 1 ORDER BY b.lane, b.seq LIMIT "               \
	           "greatest(q.key_limit, q.key_waiting_max) + l.n + 2) x) END, r.until, "         \
	           "r.starts, CASE WHEN q.key_waiting_max > 0 AND q.guests THEN (SELECT count(*) " \
	           "FROM (SELECT 1 FROM baton.wish w WHERE w.queue = l.queue AND w.line BETWEEN "  \
	           "l.lane AND l.lane ORDER BY w.line, w.seq LIMIT q.key_waiting_max + l.n + 2) "  \
	           "x) WHEN q.key_waiting_max > 0 AND q.key_scope < 3 "                            \
	           "AND strpos(l.lane, chr(3)) = 0 THEN baton.crowd_of_sites(l.queue, l.lane, "    \
	           "q.key_waiting_max + l.n + 2 + cardinality($1::bigint[]) "                      \
	           "+ cardinality($3::bigint[])) "                                                 \
	           "ELSE 0 END + CASE WHEN q.key_waiting_max > 0 AND q.key_class <> '' AND "       \
	           "q.on_conflict = 1 AND "                                                        \
	           "NOT EXISTS (SELECT 1 FROM lanes x JOIN baton.queue m ON m.id = x.queue WHERE " \
	           "x.lane = l.lane AND x.queue < l.queue AND m.key_class = q.key_class) THEN "    \
	           "baton.class_crowd(q.key_class, ARRAY(SELECT x.queue FROM lanes x WHERE "       \
	           "x.lane = l.lane), l.lane, q.key_waiting_max + l.n + 2) ELSE 0 END "            \
	           "FROM lanes l JOIN baton.queue q ON q.id = l.queue "                            \
	           "AND (q.on_conflict > 1 OR q.key_waiting_max > 0 OR q.key_starts > 0) "         \
	           "LEFT JOIN LATERAL (SELECT x.until, x.starts FROM baton.rate x WHERE "          \
	           "q.key_class = '' AND x.queue = l.queue AND x.lane = l.lane UNION ALL SELECT "  \
	           "x.until, x.starts FROM baton.rate_of(l.queue, l.lane) x "                      \
	           "WHERE q.key_class <> '') r ON coalesce(r.until, 0) > 0 "                       \
	           "WHERE baton.is_key(l.lane)")                                                   \
	X(ANSWERS, "SELECT a.head, a.fence, a.token, a.state, a.until "                            \
	           "FROM unnest($1::bigint[], $2::bigint[]) n(head, fence) "                       \
	           "CROSS JOIN LATERAL (SELECT * FROM baton.answer x WHERE x.head = n.head "       \
	           "AND x.fence = n.fence OFFSET 0) a "                                            \
	           "UNION ALL SELECT h.head, h.fence, "                                            \
	           "substring(r.tokens FROM (16 * h.at - 15)::int FOR 16), r.state, r.until "      \
	           "FROM (SELECT DISTINCT x - x % 64 AS base FROM unnest($1::bigint[]) x) n "      \
	           "CROSS JOIN LATERAL (SELECT * FROM baton.reply y WHERE y.base = n.base "        \
	           "OFFSET 0) r "                                                                  \
	           "CROSS JOIN LATERAL unnest(r.heads, r.fences) WITH ORDINALITY "                 \
	           "h(head, fence, at) WHERE (h.head, h.fence) IN "                                \
	           "(SELECT * FROM unnest($1::bigint[], $2::bigint[]))")                           \
	X(LEASES, "SELECT " LEASE_COUNTED " FROM baton.lease l "                                   \
	          "WHERE l.subject = ANY($1::text[])")                                             \
	X(HEADS, "WITH " PART_HEADS_PAST ", held AS MATERIALIZED ("                                \
	         "SELECT c.c FROM heads h CROSS JOIN LATERAL (SELECT x AS c FROM baton.claim x "   \
	         "WHERE x.head = h.seq AND x.lane IS NULL OFFSET 0) c "                            \
	         "WHERE h.lane IS NULL AND h.state = 4 UNION ALL "                                 \
	         "SELECT c.c FROM heads h CROSS JOIN LATERAL (SELECT x AS c FROM baton.claim x "   \
	         "WHERE " CLAIM_IS_OF_H "OFFSET 0) c UNION ALL "                                   \
	         "SELECT x.c FROM " PART_KEYS_OF_HEADS PART_GUEST_CLAIMS "), " PART_SEQS           \
	         "SELECT seq FROM heads WHERE lane IS NULL "                                       \
	         "UNION SELECT x.seq FROM heads h CROSS JOIN LATERAL (SELECT b.seq "               \
	         "FROM baton.batch b WHERE " LINE_OF_H "ORDER BY b.lane, b.seq "                   \
	         "LIMIT CASE WHEN h.state = 4 THEN h.max + 1 + ("                                  \
	         "SELECT sum(cardinality(c.seqs)) FROM " CLAIMS_OF_H                               \
	         ") WHEN h.flags & 4 <> 0 THEN h.max + 1 ELSE 2 END) x "                           \
	         "WHERE NOT baton.is_key(h.lane) "                                                 \
	         "UNION SELECT x.seq FROM heads h JOIN baton.queue q ON q.id = h.queue "           \
	         "CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b WHERE b.queue = h.queue "    \
	         "AND b.lane BETWEEN h.lane AND h.lane AND b.line AND b.state = 1 "                \
	         "ORDER BY b.lane, b.seq LIMIT 1 + CASE "                                          \
	         "WHEN q.key_limit = 1 AND h.flags & 4 = 0 THEN 1 "                                \
	         "WHEN q.key_limit = 1 OR h.max > 16 THEN least(q.key_limit, h.few) + h.max "      \
	         "ELSE least(q.key_limit, h.few) * h.max END) x WHERE baton.is_key(h.lane) "       \
	         "UNION SELECT b.seq FROM heads h JOIN baton.batch b ON b.queue = h.queue "        \
	         "AND b.lane = h.lane AND b.holds WHERE baton.is_key(h.lane) "                     \
	         "UNION SELECT x.seq FROM " PART_KEYS_OF_HEADS PART_GUESTS PART_SEQS_END " "       \
	         "SELECT " BATCH_COLUMNS ", b.payload, CASE WHEN baton.is_several(b.guest) "       \
	         "THEN CASE WHEN b.head THEN baton.starts_of(b.queue, b.guest) END "               \
	         "WHEN baton.is_key(b.lane) AND strpos(b.lane, chr(3)) > 0 THEN (SELECT r.starts " \
	         "FROM baton.queue q JOIN baton.rate r ON r.queue = q.id AND r.lane = "            \
	         "($9::text[])[q.key_scope] || split_part(b.lane, chr(3), 1) "                     \
	         "WHERE q.id = b.queue AND q.key_starts > 0) "                                     \
	         "WHEN baton.is_key(b.lane) "                                                      \
	         "OR b.guest IS NOT NULL THEN CASE WHEN (SELECT q.key_class FROM baton.queue q "   \
	         "WHERE q.id = b.queue) = '' THEN (SELECT r.starts FROM baton.rate r "             \
	         "WHERE r.queue = b.queue AND r.lane = coalesce(b.guest, b.lane)) ELSE (SELECT "   \
	         "r.starts FROM baton.rate_of(b.queue, coalesce(b.guest, b.lane)) r) END "         \
	         "END, " HELD_COLUMNS " FROM s CROSS JOIN LATERAL (SELECT * FROM baton.batch z "   \
	         "WHERE z.seq = s.seq OFFSET 0) b ORDER BY b.seq")                                 \
	X(HEADS_LAST, "WITH " PART_HEADS " SELECT queue, pool, rank, count(*), "                   \
	              "max(place), (array_agg(seq ORDER BY place DESC, seq DESC))[1], "            \
	              "min(place) - min(low) > 512 FROM heads GROUP BY queue, pool, rank "         \
	              "ORDER BY rank, 5, 6")                                                       \
	X(SITE_USES, "SELECT u.queue, u.line, count(*) FROM baton.runner m JOIN baton.queue q "    \
	             "ON q.name = ANY($2::text[]) AND q.key_scope < 3 CROSS JOIN LATERAL ("        \
	             "SELECT c.queue, split_part(c.lane, chr(3), 1) AS line FROM " PART_SITE       \
	             ") u WHERE m.number = $1::bigint GROUP BY 1, 2")                              \
	X(SITE_HOLDERS, "SELECT b.queue, b.lane, CASE WHEN h.n >= q.key_limit THEN (SELECT "       \
	                "coalesce(y.born, y.seq) FROM baton.batch y WHERE y.seq = h.seq) END, "    \
	                "(SELECT y.until FROM baton.rate y WHERE q.key_starts > 0 "                \
	                "AND y.queue = b.queue AND y.lane = baton.site(m.owner, q.key_scope) "     \
	                "|| split_part(b.lane, chr(3), 1)) FROM ("                                 \
	                "SELECT x.queue, x.lane, x.shard FROM unnest($1::bigint[]) n(id) "         \
	                "JOIN baton.batch x ON x.seq = n.id AND x.born IS NULL UNION ALL "         \
	                "SELECT x.queue, x.lane, x.shard FROM unnest($1::bigint[]) n(id) "         \
	                "JOIN baton.batch x ON x.born = n.id) b "                                  \
	                "JOIN baton.queue q ON q.id = b.queue AND q.key_scope < 3 "                \
	                "JOIN baton.lease l ON l.subject = chr(1) || q.name || chr(1) || b.shard " \
	                "JOIN baton.runner m ON m.number = l.runner CROSS JOIN LATERAL ("          \
	                "SELECT count(*) AS n, min((SELECT min(s) FROM unnest(c.seqs) s)) AS seq " \
	                "FROM " PART_SITE "AND split_part(c.lane, chr(3), 1) = "                   \
	                "split_part(b.lane, chr(3), 1)) h")                                        \
	X(LINE,                                                                                    \
	  PART_LANE "SELECT " BATCH_COLUMNS ", b.payload FROM (SELECT x.seq FROM l "               \
	            "CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b WHERE " LINE_OF_L         \
	            "ORDER BY b.lane, b.seq LIMIT $3::bigint + (SELECT "                           \
	            "coalesce(sum(cardinality(c.seqs)), 0) FROM " CLAIMS_OF_L ")) x UNION "        \
	            "SELECT x.seq FROM l CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b "     \
	            "WHERE " LINE_OF_L "AND b.seq <= $4::bigint) x UNION "                         \
	            "SELECT x.seq FROM l CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b "     \
	            "WHERE b.queue = l.queue AND b.lane = l.lane AND b.holds "                     \
	            "ORDER BY b.seq LIMIT 1) x UNION "                                             \
	            "SELECT unnest(c.seqs) FROM l CROSS JOIN LATERAL " CLAIMS_OF_L ") s "          \
	            "CROSS JOIN LATERAL (SELECT * FROM baton.batch z WHERE z.seq = s.seq "         \
	            "OFFSET 0) b "                                                                 \
	            "ORDER BY b.seq")                                                              \
	X(LINE_CLAIMS,                                                                             \
	  PART_LANE "SELECT " CLAIM_COLUMNS " FROM l CROSS JOIN LATERAL " CLAIMS_OF_L)             \
	X(HELD_OFF, "WITH may AS MATERIALIZED (SELECT l.subject FROM baton.lease l, "              \
	            "(SELECT coalesce($2::bigint, "                                                \
	            "(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS ms) n "            \
	            "WHERE l.subject = ANY($1::text[]) "                                           \
	            "AND ($3::bool OR NOT l.held OR l.expires_at <= n.ms)), "                      \
	            "locked AS (SELECT l.subject FROM baton.lease l JOIN may "                     \
	            "ON may.subject = l.subject FOR UPDATE OF l SKIP LOCKED) "                     \
	            "SELECT subject FROM may WHERE subject NOT IN (SELECT subject FROM locked)")   \
	X(SCHEDULES, "SELECT " SCHEDULE_COLUMNS " FROM baton.schedule "                            \
	             "WHERE name = ANY($1::text[])")                                               \
	X(XID, "SELECT " XID_COLUMNS)

#endif
