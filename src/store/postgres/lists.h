/* The statements that list and show, and those of runners. */
#ifndef POSTGRES_LISTS_H
#define POSTGRES_LISTS_H

#include "store/postgres/parts.h"

#define SQL_LISTS(X)                                                                              \
	X(LEASE_LIST, "SELECT " LEASE_COLUMNS " FROM baton.lease WHERE subject > $1::text "       \
	              "AND subject >= $2::text AND left(subject, length($2::text)) = $2::text "   \
	              "AND held AND expires_at > $3::bigint ORDER BY subject LIMIT $4::bigint")   \
	X(QUEUE_LIST, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.name > $1::text "    \
	              "ORDER BY q.name LIMIT $2::bigint")                                         \
	X(OLDEST, "WITH " PART_OLD " SELECT " BATCH_COLUMNS ", NULL::bytea FROM old "             \
	          "JOIN baton.batch b ON b.seq = old.seq")                                        \
	X(OLDEST_BULK, "SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.queue q "                \
	               "CROSS JOIN generate_series(0, q.shards) p "                               \
	               "CROSS JOIN generate_series(0, 9) r CROSS JOIN LATERAL (SELECT k.seq "     \
	               "FROM baton.mark k WHERE k.queue = q.id AND k.pool = p "                   \
	               "AND k.rank = r::smallint ORDER BY k.seq DESC LIMIT 1) m "                 \
	               "CROSS JOIN LATERAL (SELECT x.first FROM baton.bulk x "                    \
	               "WHERE x.queue = q.id AND x.pool = p AND x.rank = r::smallint "            \
	               "AND x.last > m.seq ORDER BY x.last LIMIT 1) y CROSS JOIN LATERAL "        \
	               "(SELECT * FROM baton.member z WHERE z.first = y.first AND z.state = 1 "   \
	               "ORDER BY z.seq LIMIT 1) b WHERE q.name = ANY($1::text[])")                \
	X(OLDEST_CLAIMS, "WITH " PART_OLD " SELECT " CLAIM_COLUMNS " FROM old "                   \
	                 "JOIN baton.claim c ON c.head = old.seq AND c.lane IS NULL "             \
	                 "WHERE old.lane IS NULL UNION ALL "                                      \
	                 "SELECT " CLAIM_COLUMNS " FROM old JOIN baton.claim c "                  \
	                 "ON c.queue = old.queue AND c.lane = old.lane")                          \
	X(LIST, "WITH " PART_LISTED " SELECT " BATCH_COLUMNS ", NULL::bytea FROM (SELECT b.* "    \
	        "FROM ((SELECT " BATCH_COLUMNS " FROM baton.batch b WHERE b.seq > $1::bigint "    \
	        "ORDER BY b.seq LIMIT 100000) UNION ALL SELECT " BATCH_COLUMNS " FROM (SELECT "   \
	        "x.first FROM baton.bulk x WHERE x.first > $1::bigint - 64 ORDER BY x.first "     \
	        "LIMIT 200) y JOIN baton.member b ON b.first = y.first "                          \
	        "WHERE b.seq > $1::bigint) b JOIN baton.queue q ON q.id = b.queue, listed "       \
	        "WHERE b.seq <= listed.upto AND ($2::text IS NULL OR q.name = $2::text) "         \
	        "AND ($3::text IS NULL OR b.lane = $3::text) "                                    \
	        "AND ($4::bigint = 0 OR $4::bigint = "                                            \
	        "CASE WHEN b.state = 6 AND b.rival IS NOT NULL THEN 8 ELSE b.state END) "         \
	        "AND (b.state <> 6 OR b.until > $6::bigint) "                                     \
	        "ORDER BY b.seq LIMIT $5::bigint) b "                                             \
	        "UNION ALL (SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.batch b "            \
	        "WHERE b.seq > $1::bigint ORDER BY b.seq DESC LIMIT 1) "                          \
	        "UNION ALL (SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.member b "           \
	        "WHERE b.first = (SELECT max(x.first) FROM baton.bulk x) AND b.seq > $1::bigint " \
	        "ORDER BY b.seq DESC LIMIT 1)")                                                   \
	X(LIST_CLAIMS, "SELECT DISTINCT ON (c.head, c.fence) " CLAIM_COLUMNS                      \
	               " FROM unnest($1::bigint[]) n(seq) JOIN baton.batch b ON b.seq = n.seq "   \
	               "JOIN baton.claim c ON (b.lane IS NULL AND c.head = b.seq "                \
	               "AND c.lane IS NULL) OR (c.queue = b.queue AND c.lane = b.lane) "          \
	               "WHERE b.state = 4 AND b.seq = ANY(c.seqs)")                               \
	X(LIST_QUEUES, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.id = "              \
	               "ANY($1::int[])")                                                          \
	X(LIST_END, "WITH " PART_LISTED " SELECT nullif(upto, 9223372036854775807) FROM listed")  \
	X(NEXT_DUE,                                                                               \
	  "SELECT least(d.due, e.expires_at, f.expires_at, g.until) "                             \
	  "FROM baton.queue n CROSS JOIN LATERAL (SELECT n.id AS id, n.key_starts AS key_starts " \
	  "UNION ALL SELECT m.id, m.key_starts FROM baton.queue m WHERE n.key_class <> '' "       \
	  "AND m.key_class = n.key_class AND m.key_class <> '' AND m.id <> n.id) q " PART_SINCE   \
	  " CROSS JOIN LATERAL (SELECT greatest(s.since, $2::bigint) AS since) t "                \
	  "LEFT JOIN LATERAL (SELECT b.due FROM baton.batch b WHERE b.queue = q.id "              \
	  "AND b.state IN (2, 3) AND b.due >= t.since ORDER BY b.due LIMIT 1) d ON true "         \
	  "LEFT JOIN LATERAL (SELECT c.expires_at FROM baton.claim c "                            \
	  "WHERE c.queue = q.id AND NOT c.offered AND c.expires_at >= t.since "                   \
	  "ORDER BY c.expires_at LIMIT 1) e "                                                     \
	  "ON true LEFT JOIN LATERAL (SELECT k.expires_at FROM baton.chunk k "                    \
	  "WHERE k.queue = q.id AND k.expires_at < 9223372036854775807 "                          \
	  "AND k.expires_at >= t.since ORDER BY k.expires_at LIMIT 1) f ON true "                 \
	  "LEFT JOIN LATERAL (SELECT r.until FROM baton.rate r WHERE r.queue = q.id "             \
	  "AND r.until >= t.since ORDER BY r.until LIMIT 1) g ON q.key_starts > 0 "               \
	  "WHERE NOT n.paused AND ($1::text IS NULL OR n.name = $1::text) "                       \
	  "AND coalesce(d.due, e.expires_at, f.expires_at, g.until) IS NOT NULL "                 \
	  "ORDER BY 1 LIMIT 1")                                                                   \
	X(SCHEDULE_LIST, "SELECT " SCHEDULE_COLUMNS " FROM baton.schedule "                       \
	                 "WHERE name > $1::text ORDER BY name LIMIT $2::bigint")                  \
	X(RUNNERS, "SELECT " RUNNER_COLUMNS " FROM baton.runner WHERE number > $1::bigint "       \
	           "ORDER BY number LIMIT $2::bigint")                                            \
	X(RUNNER_MARK, "UPDATE baton.runner SET wish = coalesce($3::bigint, wish), "              \
	               "state = coalesce($4::text, state) WHERE beat > 0 AND "                    \
	               "(number = $1::bigint OR name = $2::text) RETURNING number")               \
	X(RUNNER_REPORT,                                                                          \
	  "WITH m AS (UPDATE baton.runner SET state = coalesce($2::text, state) WHERE beat > 0 "  \
	  "AND number = $1::bigint RETURNING number), w AS (INSERT INTO baton.report "            \
	  "SELECT number, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $3::text "      \
	  "FROM m ON CONFLICT (runner) DO UPDATE SET at = excluded.at, "                          \
	  "report = excluded.report) SELECT number FROM m")                                       \
	X(RUNNER_REPORTED, "SELECT report, at FROM baton.report WHERE runner = $1::bigint")       \
	X(RUNNER_BEAT,                                                                            \
	  "UPDATE baton.runner SET beat = beat + 1 WHERE number = $1::bigint AND beat > 0 "       \
	  "RETURNING beat")                                                                       \
	X(RUNNER_STOP, "UPDATE baton.runner SET beat = 0 WHERE number = $1::bigint "              \
	               "AND beat = $2::bigint RETURNING beat")                                    \
	X(RUNNER_LEASES, "SELECT " LEASE_COLUMNS " FROM baton.lease WHERE runner = $1::bigint")   \
	X(RUNNER_CLAIMS, "SELECT " CLAIM_COLUMNS " FROM baton.runner r JOIN baton.claim c "       \
	                 "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "           \
	                 "WHERE r.number = $1::bigint")                                           \
	X(RUNNER_BATCHES, "SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.batch b "             \
	                  "WHERE b.seq IN (SELECT unnest(c.seqs) FROM baton.runner r "            \
	                  "JOIN baton.claim c ON c.owner = r.owner "                              \
	                  "AND c.expires_at = 9223372036854775807 WHERE r.number = $1::bigint)")  \
	X(RUNNER_CANCELS, "SELECT c.head, c.fence FROM baton.runner r JOIN baton.claim c "        \
	                  "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "          \
	                  "WHERE r.number = $1::bigint AND EXISTS (SELECT 1 FROM baton.batch b "  \
	                  "WHERE b.seq = ANY(c.seqs) AND b.cancel) LIMIT $2::bigint")             \
	X(RUNNER_QUEUES, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.id IN ("          \
	                 "SELECT c.queue FROM baton.runner r JOIN baton.claim c "                 \
	                 "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "           \
	                 "WHERE r.number = $1::bigint)")                                          \
	X(SLEEP, "INSERT INTO baton.sleeper(since) SELECT "                                       \
	         "(extract(epoch FROM clock_timestamp()) * 1000)::bigint "                        \
	         "FROM (SELECT set_config('synchronous_commit', 'off', true)) o "                 \
	         "WHERE NOT EXISTS (SELECT 1 FROM baton.sleeper) RETURNING since")                \
	X(WAKE, "SELECT set_config('synchronous_commit', 'off', true), baton.ring($1::text)")     \
	X(XID_STATUS, "SELECT pg_xact_status($1::bigint::text::xid8)")                            \
	X(VERSION, "SELECT (SELECT coalesce(sum(hashint8(q.xmin::text::bigint) "                  \
	           "+ coalesce(t.n, 0)), 0)::bigint FROM " PART_QUEUES ") * 31 + (SELECT "        \
	           "hashint8(s.xmin::text::bigint) FROM baton.state s)")                          \
	X(TIDY, "SELECT baton.tidy($1::bigint, $2::bigint) FROM (SELECT "                         \
	        "set_config('synchronous_commit', 'off', true)) o")                               \
	X(CHECK, "SELECT sentence, amount FROM baton.faults()")

#endif
