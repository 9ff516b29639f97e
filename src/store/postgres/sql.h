/* Every statement that is prepared, by name. */
#ifndef POSTGRES_SQL_H
#define POSTGRES_SQL_H

/* How long a transaction waits for its client, who may have been stopped or cut off: others wait
 * for what it has locked, and have less patience than that only if they were told to. */
#define IDLE_MS "3000"
#define IDLE_ENDED "25P03" /* the SQLSTATE of that */

#define QUEUE_COLUMNS                                                                           \
	"q.id, q.name, q.mode, q.shards, q.paused, q.payload_max, q.waiting_max, q.attempts, "  \
	"q.backoff, q.base, q.cap, q.lane_attempts, q.lane_backoff, q.lane_base, q.lane_cap, "  \
	"q.on_retry, q.on_dead, q.dedupe, q.keep, q.ready + coalesce(t.ready, 0), "             \
	"q.delayed + coalesce(t.delayed, 0), q.retrying + coalesce(t.retrying, 0), "            \
	"q.claimed + coalesce(t.claimed, 0), q.dead + coalesce(t.dead, 0), "                    \
	"q.kept + coalesce(t.kept, 0), q.done + coalesce(t.done, 0), "                          \
	"q.failed + coalesce(t.failed, 0), coalesce(t.tended, 0), "                             \
	"CASE WHEN q.key_class = '' THEN coalesce(t.top, q.top) "                               \
	"ELSE baton.class_top(q.key_class) END, "                                               \
	"coalesce(t.floor, q.floor), q.key_limit, q.hold_on_retry, q.on_conflict, "             \
	"q.key_waiting_max, q.key_fair, q.key_starts, q.key_window, q.key_ttl, "                \
	"coalesce(t.n, 0), q.xmin, q.guests, q.waiting + coalesce(t.waiting, 0), q.key_scope, " \
	"q.key_class, CASE WHEN q.key_class <> '' THEN baton.class_peers(q.id, q.key_class) END"

/* Queues, and what is counted of them. */
#define PART_QUEUES                                                     \
	"baton.queue q LEFT JOIN LATERAL (SELECT * FROM baton.tally y " \
	"WHERE y.queue = q.id ORDER BY y.n DESC LIMIT 1) t ON true"

/* What there is one of: `s`, and the numbers, `z`. */
#define START_COLUMNS                                                                \
	"(extract(epoch FROM clock_timestamp()) * 1000)::bigint, s.made, s.runner, " \
	"z.last_value - CASE WHEN z.is_called THEN 0 ELSE 1 END, s.version"

/* The same, and queues: at least one row. */
#define PART_LOOK "FROM baton.state s CROSS JOIN baton.seq z LEFT JOIN (" PART_QUEUES ") "

/* baton.since() of a queue `q`, in place. */
#define PART_SINCE                                                                       \
	"CROSS JOIN LATERAL (SELECT coalesce((SELECT y.tended FROM baton.tally y WHERE " \
	"y.queue = q.id ORDER BY y.n DESC LIMIT 1), 0) AS since OFFSET 0) s"

#define BATCH_COLUMNS                                                                        \
	"b.seq, b.born, b.queue, b.lane, b.state, b.rank, b.flags, b.put_at, b.due, b.grp, " \
	"b.retry, b.attempts, b.fence, b.cancel, b.holds, b.blocks, b.error, b.result, "     \
	"b.ended_at, b.until, b.rival, b.place, b.guest, b.keeps, b.head"
#define CLAIM_COLUMNS                                                                   \
	"c.head, c.fence, c.token, c.owner, c.queue, c.lane, c.granter, c.claimed_at, " \
	"c.expires_at, c.offered, c.seqs, c.guest"
/* The same of a claim that comes with its first batch: `s.c`. */
#define HELD_COLUMNS                                                                     \
	"(s.c).head, (s.c).fence, (s.c).token, (s.c).owner, (s.c).queue, (s.c).lane, "   \
	"(s.c).granter, (s.c).claimed_at, (s.c).expires_at, (s.c).offered, (s.c).seqs, " \
	"(s.c).guest"
#define LEASE_COLUMNS \
	"subject, held, owner, token, nonce, fence, counter, claimed_at, expires_at, runner"
#define SCHEDULE_COLUMNS "name, cron, zone, missed, queue, lane, priority, payload, last, next"
#define RUNNER_COLUMNS                                                                  \
	"number, name, slot, endpoint, labels, owner, weight, ttl, since, beat, host, " \
	"queues, life, guardian, wish, state"

/* The time: $2, or that of the server. */
#define PART_NOW                                                                                \
	"(SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) " \
	"AS now OFFSET 0)"

/* Whether time has done something to a queue. */
#define PART_IS_DUE                                                                            \
	"EXISTS (SELECT 1 FROM baton.chunk c WHERE c.queue = q.id "                            \
	"AND c.expires_at >= coalesce(t.tended, 0) "                                           \
	"AND c.expires_at <= m.now AND c.expires_at < 9223372036854775807) OR "                \
	"EXISTS (SELECT 1 FROM baton.batch b WHERE b.queue = q.id AND b.state IN (2, 3) "      \
	"AND b.due >= coalesce(t.tended, 0) AND b.due <= m.now) OR "                           \
	"EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = q.id AND NOT c.offered "          \
	"AND c.expires_at >= coalesce(t.tended, 0) AND c.expires_at <= m.now) OR "             \
	"(q.key_starts > 0 AND ((SELECT r.until FROM baton.rate r WHERE r.queue = q.id "       \
	"AND r.until >= coalesce(t.tended, 0) AND r.until <= m.now ORDER BY r.until LIMIT 1) " \
	"IS NOT NULL OR (SELECT r.until FROM baton.rate r WHERE r.queue = q.id "               \
	"AND r.until > m.now + baton.window_ms(q) ORDER BY r.until LIMIT 1) "                  \
	"IS NOT NULL)) OR "                                                                    \
	"EXISTS (SELECT 1 FROM baton.claim c WHERE c.queue = q.id AND c.offered "              \
	"AND c.expires_at > m.now)"

/* The same: 0 it has not, 2 it has, 1 that is not known. */
#define PART_DUE \
	"CASE WHEN q.mixed THEN 2 WHEN q.paused THEN 1 WHEN " PART_IS_DUE " THEN 2 ELSE 0 END"

/* Whether there are heads in a pool of a queue. */
#define PART_HAS_HEADS(pool)                                                                    \
	"(SELECT CASE WHEN k.places IS NULL THEN EXISTS (SELECT 1 FROM baton.batch b "          \
	"WHERE b.queue = q.id AND b.pool = " pool " AND b.head) ELSE EXISTS (SELECT 1 FROM "    \
	"generate_series(0, 9) r CROSS JOIN LATERAL (SELECT 1 FROM baton.batch b "              \
	"WHERE b.queue = q.id AND b.pool = " pool " AND b.head AND b.rank = r::smallint "       \
	"AND coalesce(b.place, b.seq * 2) > k.places[r + 1] LIMIT 1) x) END FROM (SELECT 1) o " \
	"LEFT JOIN LATERAL (SELECT l.places FROM baton.low l WHERE l.queue = q.id "             \
	"AND l.pool = " pool " ORDER BY l.n DESC LIMIT 1) k ON true)"

/* A lease, `l`, and how many claims were counted under it. */
#define LEASE_COUNTED                                                                     \
	"l.subject, l.held, l.owner, l.token, l.nonce, l.fence, "                         \
	"greatest(l.counter, (SELECT k.n FROM baton.counter k "                           \
	"WHERE k.subject = l.subject AND k.fence = l.fence ORDER BY k.n DESC LIMIT 1)), " \
	"l.claimed_at, l.expires_at, l.runner, l.counter"

/* The number of the transaction, and whether somebody elsewhere sleeps. */
#define XID_COLUMNS                                        \
	"pg_current_xact_id_if_assigned()::text::bigint, " \
	"EXISTS (SELECT 1 FROM baton.sleeper)"

/* Claims and batches that are named: $1, $2 the claims, $3 the batches. */
#define PART_NAMED_CLAIMS                                                                        \
	"SELECT c.* FROM unnest($1::bigint[], $2::bigint[]) n(head, fence) CROSS JOIN LATERAL (" \
	"SELECT * FROM baton.claim x WHERE x.head = n.head AND x.fence = n.fence OFFSET 0) c"
#define PART_NAMED_BATCHES                                                        \
	"SELECT b.seq, b.queue, b.lane, b.guest FROM unnest($3::bigint[]) n(id) " \
	"JOIN baton.batch b ON b.seq = n.id AND b.born IS NULL UNION ALL "        \
	"SELECT b.seq, b.queue, b.lane, b.guest FROM unnest($3::bigint[]) n(id) " \
	"JOIN baton.batch b ON b.born = n.id"

/* Behind an unnest(): rows of several batches of which one is named. */
#define PART_BULKS                                                \
	"n(id) JOIN baton.bulk b ON b.first >= n.id - n.id % 64 " \
	"AND b.first <= n.id AND (b.has >> (n.id - b.first)::int) & 1 = 1 "

/* Behind an unnest(): chunks of claims near those that are named, by numbers in steps of 64, and
 * the lowest and highest that are named of these. In a way that leaves the planner no choice but to
 * look for each of them in the index. The claims of a chunk are in the order of their numbers. */
#define PART_CHUNKS                                                                               \
	"n(base, low, high) CROSS JOIN LATERAL (SELECT *, x.ctid AS at FROM baton.chunk x WHERE " \
	"x.first >= n.base AND x.first < n.base + 64 AND x.heads[1] <= n.high "                   \
	"AND x.heads[cardinality(x.heads)] >= n.low OFFSET 0) c "

/* The stripes that are named, and those of claims, in chunks and in rows of their own: $1 the
 * heads, $2 the fences, $3 the stripes, $4 to $6 the chunks. */
#define PART_LOCK                                                                    \
	"WITH k AS MATERIALIZED (SELECT c.queue, c.heads FROM unnest($4::bigint[], " \
	"$5::bigint[], $6::bigint[]) " PART_CHUNKS ") "                              \
	"SELECT pg_advisory_xact_lock(1650553967, s) FROM ("                         \
	"SELECT s FROM unnest($3::int[]) s UNION "                                   \
	"SELECT q.stripe FROM k JOIN baton.queue q ON q.id = k.queue UNION "         \
	"SELECT q.stripe FROM (" PART_NAMED_CLAIMS ") c "                            \
	"JOIN baton.queue q ON q.id = c.queue WHERE c.head NOT IN ("                 \
	"SELECT unnest(k.heads) FROM k)"

/* What is looked at to find out which rows of several batches are claimed from. */
#define PART_BULK "x.first, x.last, x.queue, x.pool, x.rank, x.n"

/* A queue whose number, or if it is new, whose name is given: `u`. */
#define PART_QUEUE_OF                                                   \
	"coalesce(nullif(u.queue, 0), (SELECT q.id FROM baton.queue q " \
	"WHERE q.name = u.name))"

/* Up to which number nothing is in the line of a lane: see baton.pass(). Of keys none is known. */
#define PAST_OF_Y                                                            \
	"CASE WHEN baton.is_key(y.lane) THEN 0 ELSE coalesce((SELECT p.seq " \
	"FROM baton.past p WHERE p.queue = y.queue AND p.lane = y.lane "     \
	"ORDER BY p.n DESC LIMIT 1), 0) END AS past"
#define PAST_OF_H                                                            \
	"CASE WHEN baton.is_key(h.lane) THEN 0 ELSE coalesce((SELECT p.seq " \
	"FROM baton.past p WHERE p.queue = h.queue AND p.lane = h.lane "     \
	"ORDER BY p.n DESC LIMIT 1), 0) END AS past"

/* What is in the line of the lane of `l`, or of `h`, and its claims: said so that only the index
 * over lanes can be used, from there on. */
#define LINE_OF_L                                                                        \
	"b.queue = l.queue AND (b.lane, b.seq) > (l.lane, l.past) AND b.lane <= l.lane " \
	"AND b.line "
#define LINE_OF_H                                                                        \
	"b.queue = h.queue AND (b.lane, b.seq) > (h.lane, h.past) AND b.lane <= h.lane " \
	"AND b.line "
#define CLAIM_IS_OF_L \
	"x.queue = l.queue AND (x.lane, x.head) > (l.lane, l.past) AND x.lane <= l.lane "
#define CLAIM_IS_OF_H \
	"x.queue = h.queue AND (x.lane, x.head) > (h.lane, h.past) AND x.lane <= h.lane "
#define CLAIMS_OF_L "(SELECT * FROM baton.claim x WHERE " CLAIM_IS_OF_L "OFFSET 0) c "
#define CLAIMS_OF_H "(SELECT * FROM baton.claim x WHERE " CLAIM_IS_OF_H "OFFSET 0) c "

/* Claims as whole rows, `c`, each read once: those that are named, $1 and $2. Before any line is
 * read it is noted how many dead rows were come across. */
#define PART_NAMED                                                                            \
	"walk AS MATERIALIZED (SELECT baton.walked() AS n), "                                 \
	"named AS MATERIALIZED (SELECT c.c FROM walk, unnest($1::bigint[], $2::bigint[]) "    \
	"n(head, fence) CROSS JOIN LATERAL (SELECT x AS c FROM baton.claim x WHERE x.head = " \
	"n.head AND x.fence = n.fence OFFSET 0) c)"

/* The lanes of these, and those that are named: $4 the queues, $5 the lanes. */
#define PART_LANES_OF(claims)                                                               \
	"lanes AS MATERIALIZED (SELECT y.*, " PAST_OF_Y " FROM ("                           \
	"SELECT queue, lane, count(*) AS n FROM (" claims                                   \
	"UNION ALL SELECT b.queue, x.lane FROM (" PART_NAMED_BATCHES ") b "                 \
	"CROSS JOIN LATERAL (SELECT b.lane UNION ALL SELECT unnest(baton.lines(b.guest))) " \
	"x(lane) "                                                                          \
	"UNION ALL SELECT q.id, w.lane FROM unnest($4::text[], $5::text[]) w(name, lane) "  \
	"JOIN baton.queue q ON q.name = w.name) x WHERE lane IS NOT NULL GROUP BY 1, 2) y)"

#define PART_LANES PART_LANES_OF("SELECT queue, lane FROM (" PART_NAMED_CLAIMS ") c ")
#define PART_LANES_NAMED PART_LANES_OF("SELECT (c).queue, (c).lane FROM named ")

/* The lines of keys $2 in all queues of the classes $1, and the claims that hold these. */
#define PART_CLASS                                                                            \
	"WITH k AS MATERIALIZED (SELECT m.id AS queue, x.line FROM baton.queue m CROSS JOIN " \
	"unnest($2::text[]) x(line) WHERE m.key_class = ANY($1::text[]) "                     \
	"AND m.key_class <> '') "
#define PART_CLASS_ASKED "q.name = ANY($1::text[]) AND NOT q.paused"
#define CLAIMS_OF_K                                                                       \
	"(SELECT x.* FROM baton.claim x WHERE x.queue = k.queue AND x.lane = k.line "     \
	"UNION ALL SELECT x.* FROM baton.claim x WHERE x.queue = k.queue "                \
	"AND x.guest = k.line UNION ALL SELECT x.* FROM baton.hold h JOIN baton.claim x " \
	"ON x.head = h.seq AND x.fence = h.fence WHERE h.queue = k.queue "                \
	"AND h.line = k.line) c "

/* The lane $2 of the queue $1. */
#define PART_LANE                                                                        \
	"WITH l AS MATERIALIZED (SELECT y.*, " PAST_OF_Y " FROM (SELECT q.id AS queue, " \
	"$2::text AS lane FROM baton.queue q WHERE q.name = $1::text) y) "

/* What lanes have to do with the lines of keys, `k` with `queue` and `key`: the batches that hold
 * the key, or keep it, the first that asks for it, also if those are gone whose claims are over,
 * and who comes after these in their lanes. Only of queues that have had such work. */
#define PART_GUESTS                                                                            \
	"JOIN baton.queue gq ON gq.id = k.queue AND gq.guests CROSS JOIN LATERAL ("            \
	"SELECT unnest(c.seqs) AS seq FROM baton.claim c WHERE c.queue = k.queue "             \
	"AND (c.guest = k.key OR c.lane = k.key) UNION ALL "                                   \
	"SELECT f.seq FROM baton.claim c CROSS JOIN LATERAL (SELECT b.seq FROM baton.batch b " \
	"WHERE b.queue = c.queue AND b.lane BETWEEN c.lane AND c.lane AND b.line "             \
	"AND b.state <> 4 "                                                                    \
	"ORDER BY b.lane, b.seq LIMIT 1) f WHERE c.queue = k.queue AND c.guest = k.key "       \
	"AND c.offered UNION ALL "                                                             \
	"SELECT b.seq FROM baton.batch b WHERE b.queue = k.queue AND b.guest = k.key "         \
	"AND b.keeps UNION ALL "                                                               \
	"SELECT b.seq FROM baton.batch b WHERE b.queue = k.queue AND b.lane = k.key "          \
	"AND b.holds UNION ALL "                                                               \
	"(SELECT b.seq FROM baton.batch b WHERE b.queue = k.queue AND b.guest BETWEEN k.key "  \
	"AND k.key AND b.asks ORDER BY b.guest, b.seq LIMIT 1) UNION ALL "                     \
	"(SELECT b.seq FROM baton.batch b WHERE b.queue = k.queue AND b.guest BETWEEN k.key "  \
	"AND k.key AND b.asks AND b.state = 1 ORDER BY b.guest, b.seq LIMIT 1) UNION ALL "     \
	"SELECT unnest(c.seqs) FROM (SELECT b.lane, b.state FROM baton.batch b "               \
	"WHERE b.queue = k.queue AND b.guest BETWEEN k.key AND k.key AND b.asks "              \
	"ORDER BY b.guest, b.seq LIMIT 1) a JOIN baton.claim c ON c.queue = k.queue "          \
	"AND c.lane = a.lane WHERE a.state = 4 UNION ALL "                                     \
	"SELECT baton.several_of(k.queue, k.key)) x "

/* The claims of these, as whole rows. */
#define PART_GUEST_CLAIMS                                                                 \
	"JOIN baton.queue gq ON gq.id = k.queue AND gq.guests CROSS JOIN LATERAL ("       \
	"SELECT c AS c FROM baton.claim c WHERE c.queue = k.queue AND (c.guest = k.key "  \
	"OR c.lane = k.key) UNION ALL SELECT c FROM (SELECT b.lane, b.state "             \
	"FROM baton.batch b WHERE b.queue = k.queue AND b.guest BETWEEN k.key AND k.key " \
	"AND b.asks ORDER BY b.guest, b.seq LIMIT 1) a JOIN baton.claim c "               \
	"ON c.queue = k.queue AND c.lane = a.lane WHERE a.state = 4 UNION ALL "           \
	"SELECT c FROM baton.several_claims_of(k.queue, k.key) c) x "

/* Numbers of batches, each once, with the claim whose first it is: `s`. To be followed by what else
 * is looked for, and PART_SEQS_END. */
#define PART_SEQS                                                                      \
	"s AS MATERIALIZED (SELECT DISTINCT ON (y.seq) y.seq, y.c FROM ("              \
	"SELECT u.seq, CASE WHEN u.seq = (h.c).seqs[1] THEN h.c END AS c FROM held h " \
	"CROSS JOIN LATERAL unnest((h.c).seqs) u(seq) UNION ALL "                      \
	"SELECT o.seq, NULL::baton.claim FROM ("
#define PART_SEQS_END ") o) y ORDER BY y.seq, y.c IS NULL)"

/* Such keys of what is named, and of what can be claimed. */
#define PART_KEYS_NAMED "(SELECT queue, lane AS key FROM lanes WHERE baton.is_key(lane)) k "
#define PART_KEYS_OF_HEADS                                                             \
	"(SELECT DISTINCT queue, unnest(CASE WHEN baton.is_several(guest) THEN "       \
	"baton.lines(guest) ELSE ARRAY[coalesce(guest, lane)] END) AS key FROM heads " \
	"WHERE guest IS NOT NULL OR baton.is_key(lane)) k "

/* What is claimed by the runner `m`, and, if keys count for each host, by others of its host: `r`,
 * whose owner is written as baton_owner_print() does; of the queue `q`, whose keys count so. */
#define PART_SITE                                                                            \
	"baton.runner r JOIN baton.claim c ON c.owner = r.owner "                            \
	"AND c.expires_at = 9223372036854775807 AND c.queue = q.id "                         \
	"AND strpos(c.lane, chr(3)) > 0 WHERE (r.number = m.number OR (q.key_scope = 2 AND " \
	"split_part(r.owner, ':', 2) <> '' AND split_part(r.owner, ':', 2) = "               \
	"split_part(m.owner, ':', 2))) "

/* What can be claimed of queues: $1 their names, $2 the pools, $3 how many, $4 how many batches in
 * one claim, $5 to $7 after which rank, place and number, $8 which keys are passed over: the number
 * of the queue and the line, $9 with what the names of starts begin where who claims is, by scope:
 * keys that have started too often are passed over, too. They are looked for from the first rank
 * on, and in each rank for which it is known from the place on up to which there are none. */
#define PART_HEADS_AND(more)                                                                \
	"heads AS MATERIALIZED (SELECT h.*, w.few, w.max" more " FROM "                     \
	"unnest($1::text[], $2::int[], "                                                    \
	"$3::int[], $4::int[], $5::smallint[], $6::bigint[], $7::bigint[]) "                \
	"w(name, pool, few, max, rank, place, seq) JOIN baton.queue q ON q.name = w.name "  \
	"CROSS JOIN LATERAL (SELECT x.* FROM (SELECT z.rank, z.place, "                     \
	"lead(z.rank, 1, 10::smallint) OVER (ORDER BY z.rank) AS next, "                    \
	"(z.rank, z.place) >= (w.rank, w.place) AS later FROM ("                            \
	"SELECT -1::smallint AS rank, 0::bigint AS place UNION ALL "                        \
	"SELECT (u.at - 1)::smallint, u.place FROM (SELECT l.places FROM baton.low l "      \
	"WHERE l.queue = q.id AND l.pool = w.pool ORDER BY l.n DESC LIMIT 1) k CROSS JOIN " \
	"LATERAL unnest(k.places) WITH ORDINALITY u(place, at) WHERE u.place > 0) z) r "    \
	"CROSS JOIN LATERAL (SELECT b.queue, b.pool, b.lane, b.guest, b.seq, "              \
	"b.rank, b.state, "                                                                 \
	"b.flags, coalesce(b.place, b.seq * 2) AS place, "                                  \
	"CASE WHEN b.rank = r.rank THEN r.place ELSE 0 END AS low "                         \
	"FROM baton.batch b WHERE b.queue = q.id AND b.pool = w.pool AND b.head "           \
	"AND b.rank < r.next AND (b.rank, coalesce(b.place, b.seq * 2), b.seq) > "          \
	"(CASE WHEN r.later THEN r.rank ELSE w.rank END, "                                  \
	"CASE WHEN r.later THEN r.place ELSE w.place END, "                                 \
	"CASE WHEN r.later THEN 9223372036854775807 ELSE w.seq END) "                       \
	"AND ($8::text[] = '{}' OR ((q.id || split_part(b.lane, chr(3), 1)) = "             \
	"ANY($8::text[])) IS NOT TRUE) "                                                    \
	"AND ($9::text[] = '{}' OR q.key_starts = 0 OR q.key_scope = 3 "                    \
	"OR NOT EXISTS (SELECT 1 FROM baton.rate y WHERE y.queue = q.id "                   \
	"AND y.lane = ($9::text[])[q.key_scope] || split_part(b.lane, chr(3), 1) "          \
	"AND y.until > 0)) "                                                                \
	"ORDER BY b.rank, coalesce(b.place, b.seq * 2), b.seq LIMIT w.few) x "              \
	"ORDER BY x.rank, x.place, x.seq LIMIT w.few) h)"

#define PART_HEADS PART_HEADS_AND("")
#define PART_HEADS_PAST PART_HEADS_AND(", " PAST_OF_H)

/* The first head of each priority, of the queues $1. */
#define PART_OLD                                                                                  \
	"old AS MATERIALIZED (SELECT s.* FROM baton.queue q CROSS JOIN generate_series(0, 9) r "  \
	"CROSS JOIN LATERAL (SELECT x.* FROM generate_series(0, q.shards) p "                     \
	"CROSS JOIN LATERAL (SELECT y.seq, y.queue, y.lane, "                                     \
	"coalesce(y.place, y.seq * 2) AS place "                                                  \
	"FROM baton.batch y WHERE y.queue = q.id AND y.pool = p AND y.head "                      \
	"AND y.rank = r::smallint AND coalesce(y.place, y.seq * 2) > coalesce(("                  \
	"SELECT l.places[r + 1] FROM baton.low l WHERE l.queue = q.id AND l.pool = p "            \
	"ORDER BY l.n DESC LIMIT 1), 0) ORDER BY coalesce(y.place, y.seq * 2), y.seq LIMIT 1) x " \
	"ORDER BY x.place, x.seq LIMIT 1) s WHERE q.name = ANY($1::text[]))"

/* Up to which number what comes after $1 is looked at. */
#define PART_LISTED                                                                          \
	"listed AS MATERIALIZED (SELECT least(9223372036854775807, (SELECT max(seq) FROM ("  \
	"SELECT seq FROM baton.batch WHERE seq > $1::bigint ORDER BY seq LIMIT 100000) x "   \
	"HAVING count(*) = 100000), (SELECT max(first) FROM (SELECT first FROM baton.bulk "  \
	"WHERE first > $1::bigint - 64 ORDER BY first LIMIT 200) x HAVING count(*) = 200)) " \
	"AS upto)"

/* Rows that are found by numbers are deleted by where they are (ctid), or looked for in a subquery
 * that cannot become a join: the planner joins by reading a whole table if the statistics say that
 * nothing is in it, and then walks over all that is dead in it.
 *
 * Lines are read by `b.lane BETWEEN x AND x ... ORDER BY b.lane, b.seq`: functions.sql says why. */
#define SQL_TABLE(X)                                                                               \
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
	X(DRAW_EXPECTED,                                                                           \
	  "SELECT CASE WHEN min(x.n) <> $1::bigint OR max(x.n) <> $1::bigint + $2::bigint - 1 "    \
	  "THEN baton.draw(0, 1) END FROM (SELECT nextval('baton.seq') AS n "                      \
	  "FROM generate_series(1, $2::bigint)) x")                                                \
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
	           "ELSE 0 END FROM lanes l JOIN baton.queue q ON q.id = l.queue "                 \
	           "AND (q.on_conflict > 1 OR q.key_waiting_max > 0 OR q.key_starts > 0) "         \
	           "LEFT JOIN baton.rate r ON r.queue = l.queue AND r.lane = l.lane "              \
	           "AND coalesce(r.until, 0) > 0 WHERE baton.is_key(l.lane)")                      \
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
	         "OR b.guest IS NOT NULL THEN (SELECT r.starts FROM baton.rate r "                 \
	         "WHERE r.queue = b.queue AND r.lane = coalesce(b.guest, b.lane)) "                \
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
	X(RAISE, "SELECT baton.raise(f.queue, f.pool, f.rank) FROM unnest($1::int[], $2::int[], "  \
	         "$3::int[]) f(queue, pool, rank)")                                                \
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
	X(HELD_OFF, "WITH may AS MATERIALIZED (SELECT l.subject FROM baton.lease l, "              \
	            "(SELECT coalesce($2::bigint, "                                                \
	            "(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS ms) n "            \
	            "WHERE l.subject = ANY($1::text[]) "                                           \
	            "AND ($3::bool OR NOT l.held OR l.expires_at <= n.ms)), "                      \
	            "locked AS (SELECT l.subject FROM baton.lease l JOIN may "                     \
	            "ON may.subject = l.subject FOR UPDATE OF l SKIP LOCKED) "                     \
	            "SELECT subject FROM may WHERE subject NOT IN (SELECT subject FROM locked)")   \
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
	X(SETTLE_RATE, "SELECT baton.settle_rate(q.id, u.was, $3::bigint) FROM "                   \
	               "unnest($1::text[], $2::bigint[]) u(name, was) "                            \
	               "JOIN baton.queue q ON q.name = u.name")                                    \
	X(PACE_LEAVE, "SELECT baton.pace_leave(q.id, w.lanes) FROM (SELECT name, "                 \
	              "array_agg(lane) AS lanes FROM unnest($1::text[], $2::text[]) "              \
	              "u(name, lane) GROUP BY name) w JOIN baton.queue q ON q.name = w.name")      \
	X(SETTLE_LIMIT, "SELECT baton.settle_limit(q.id) FROM baton.queue q "                      \
	                "WHERE q.name = ANY($1::text[])")                                          \
	X(LEASE_LIST, "SELECT " LEASE_COLUMNS " FROM baton.lease WHERE subject > $1::text "        \
	              "AND subject >= $2::text AND left(subject, length($2::text)) = $2::text "    \
	              "AND held AND expires_at > $3::bigint ORDER BY subject LIMIT $4::bigint")    \
	X(QUEUE_LIST, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.name > $1::text "     \
	              "ORDER BY q.name LIMIT $2::bigint")                                          \
	X(OLDEST, "WITH " PART_OLD " SELECT " BATCH_COLUMNS ", NULL::bytea FROM old "              \
	          "JOIN baton.batch b ON b.seq = old.seq")                                         \
	X(OLDEST_BULK, "SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.queue q "                 \
	               "CROSS JOIN generate_series(0, q.shards) p "                                \
	               "CROSS JOIN generate_series(0, 9) r CROSS JOIN LATERAL (SELECT k.seq "      \
	               "FROM baton.mark k WHERE k.queue = q.id AND k.pool = p "                    \
	               "AND k.rank = r::smallint ORDER BY k.seq DESC LIMIT 1) m "                  \
	               "CROSS JOIN LATERAL (SELECT x.first FROM baton.bulk x "                     \
	               "WHERE x.queue = q.id AND x.pool = p AND x.rank = r::smallint "             \
	               "AND x.last > m.seq ORDER BY x.last LIMIT 1) y CROSS JOIN LATERAL "         \
	               "(SELECT * FROM baton.member z WHERE z.first = y.first AND z.state = 1 "    \
	               "ORDER BY z.seq LIMIT 1) b WHERE q.name = ANY($1::text[])")                 \
	X(OLDEST_CLAIMS, "WITH " PART_OLD " SELECT " CLAIM_COLUMNS " FROM old "                    \
	                 "JOIN baton.claim c ON c.head = old.seq AND c.lane IS NULL "              \
	                 "WHERE old.lane IS NULL UNION ALL "                                       \
	                 "SELECT " CLAIM_COLUMNS " FROM old JOIN baton.claim c "                   \
	                 "ON c.queue = old.queue AND c.lane = old.lane")                           \
	X(LIST, "WITH " PART_LISTED " SELECT " BATCH_COLUMNS ", NULL::bytea FROM (SELECT b.* "     \
	        "FROM ((SELECT " BATCH_COLUMNS " FROM baton.batch b WHERE b.seq > $1::bigint "     \
	        "ORDER BY b.seq LIMIT 100000) UNION ALL SELECT " BATCH_COLUMNS " FROM (SELECT "    \
	        "x.first FROM baton.bulk x WHERE x.first > $1::bigint - 64 ORDER BY x.first "      \
	        "LIMIT 200) y JOIN baton.member b ON b.first = y.first "                           \
	        "WHERE b.seq > $1::bigint) b JOIN baton.queue q ON q.id = b.queue, listed "        \
	        "WHERE b.seq <= listed.upto AND ($2::text IS NULL OR q.name = $2::text) "          \
	        "AND ($3::text IS NULL OR b.lane = $3::text) "                                     \
	        "AND ($4::bigint = 0 OR $4::bigint = "                                             \
	        "CASE WHEN b.state = 6 AND b.rival IS NOT NULL THEN 8 ELSE b.state END) "          \
	        "AND (b.state <> 6 OR b.until > $6::bigint) "                                      \
	        "ORDER BY b.seq LIMIT $5::bigint) b "                                              \
	        "UNION ALL (SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.batch b "             \
	        "WHERE b.seq > $1::bigint ORDER BY b.seq DESC LIMIT 1) "                           \
	        "UNION ALL (SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.member b "            \
	        "WHERE b.first = (SELECT max(x.first) FROM baton.bulk x) AND b.seq > $1::bigint "  \
	        "ORDER BY b.seq DESC LIMIT 1)")                                                    \
	X(LIST_CLAIMS, "SELECT DISTINCT ON (c.head, c.fence) " CLAIM_COLUMNS                       \
	               " FROM unnest($1::bigint[]) n(seq) JOIN baton.batch b ON b.seq = n.seq "    \
	               "JOIN baton.claim c ON (b.lane IS NULL AND c.head = b.seq "                 \
	               "AND c.lane IS NULL) OR (c.queue = b.queue AND c.lane = b.lane) "           \
	               "WHERE b.state = 4 AND b.seq = ANY(c.seqs)")                                \
	X(LIST_QUEUES, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.id = "               \
	               "ANY($1::int[])")                                                           \
	X(LIST_END, "WITH " PART_LISTED " SELECT nullif(upto, 9223372036854775807) FROM listed")   \
	X(NEXT_DUE,                                                                                \
	  "SELECT least(d.due, e.expires_at, f.expires_at, g.until) "                              \
	  "FROM baton.queue n CROSS JOIN LATERAL (SELECT n.id AS id, n.key_starts AS key_starts "  \
	  "UNION ALL SELECT m.id, m.key_starts FROM baton.queue m WHERE n.key_class <> '' "        \
	  "AND m.key_class = n.key_class AND m.key_class <> '' AND m.id <> n.id) q " PART_SINCE    \
	  " CROSS JOIN LATERAL (SELECT greatest(s.since, $2::bigint) AS since) t "                 \
	  "LEFT JOIN LATERAL (SELECT b.due FROM baton.batch b WHERE b.queue = q.id "               \
	  "AND b.state IN (2, 3) AND b.due >= t.since ORDER BY b.due LIMIT 1) d ON true "          \
	  "LEFT JOIN LATERAL (SELECT c.expires_at FROM baton.claim c "                             \
	  "WHERE c.queue = q.id AND NOT c.offered AND c.expires_at >= t.since "                    \
	  "ORDER BY c.expires_at LIMIT 1) e "                                                      \
	  "ON true LEFT JOIN LATERAL (SELECT k.expires_at FROM baton.chunk k "                     \
	  "WHERE k.queue = q.id AND k.expires_at < 9223372036854775807 "                           \
	  "AND k.expires_at >= t.since ORDER BY k.expires_at LIMIT 1) f ON true "                  \
	  "LEFT JOIN LATERAL (SELECT r.until FROM baton.rate r WHERE r.queue = q.id "              \
	  "AND r.until >= t.since ORDER BY r.until LIMIT 1) g ON q.key_starts > 0 "                \
	  "WHERE NOT n.paused AND ($1::text IS NULL OR n.name = $1::text) "                        \
	  "AND coalesce(d.due, e.expires_at, f.expires_at, g.until) IS NOT NULL "                  \
	  "ORDER BY 1 LIMIT 1")                                                                    \
	X(SCHEDULES, "SELECT " SCHEDULE_COLUMNS " FROM baton.schedule "                            \
	             "WHERE name = ANY($1::text[])")                                               \
	X(SCHEDULE_LIST, "SELECT " SCHEDULE_COLUMNS " FROM baton.schedule "                        \
	                 "WHERE name > $1::text ORDER BY name LIMIT $2::bigint")                   \
	X(SCHEDULE_SET, "INSERT INTO baton.schedule(" SCHEDULE_COLUMNS ") VALUES($1::text, "       \
	                "$2::text, $3::text, $4::bigint, $5::text, $6::text, $7::bigint, "         \
	                "$8::bytea, $9::bigint, $10::bigint) ON CONFLICT (name) DO UPDATE SET "    \
	                "cron = excluded.cron, zone = excluded.zone, missed = excluded.missed, "   \
	                "queue = excluded.queue, lane = excluded.lane, "                           \
	                "priority = excluded.priority, payload = excluded.payload, "               \
	                "last = excluded.last, next = excluded.next")                              \
	X(SCHEDULE_DROP, "DELETE FROM baton.schedule WHERE name = ANY($1::text[])")                \
	X(RUNNERS, "SELECT " RUNNER_COLUMNS " FROM baton.runner WHERE number > $1::bigint "        \
	           "ORDER BY number LIMIT $2::bigint")                                             \
	X(RUNNER_ADD, "INSERT INTO baton.runner(" RUNNER_COLUMNS ") VALUES($1::bigint, "           \
	              "$2::text, $3::bigint, $4::text, $5::text, $6::text, $7::bigint, "           \
	              "$8::bigint, $9::bigint, $10::bigint, $11::text, $12::text, $13::text, "     \
	              "$14::bigint, $15::bigint, $16::text)")                                      \
	X(RUNNER_MARK, "UPDATE baton.runner SET wish = coalesce($3::bigint, wish), "               \
	               "state = coalesce($4::text, state) WHERE beat > 0 AND "                     \
	               "(number = $1::bigint OR name = $2::text) RETURNING number")                \
	X(RUNNER_REPORT,                                                                           \
	  "WITH m AS (UPDATE baton.runner SET state = coalesce($2::text, state) WHERE beat > 0 "   \
	  "AND number = $1::bigint RETURNING number), w AS (INSERT INTO baton.report "             \
	  "SELECT number, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $3::text "       \
	  "FROM m ON CONFLICT (runner) DO UPDATE SET at = excluded.at, "                           \
	  "report = excluded.report) SELECT number FROM m")                                        \
	X(RUNNER_REPORTED, "SELECT report, at FROM baton.report WHERE runner = $1::bigint")        \
	X(RUNNER_LAST, "UPDATE baton.state SET runner = $1::bigint")                               \
	X(RUNNER_DROP, "WITH d AS (DELETE FROM baton.runner WHERE number = ANY($1::bigint[]) "     \
	               "RETURNING owner) SELECT baton.rate_forget(d.owner) FROM d")                \
	X(RUNNER_BEAT,                                                                             \
	  "UPDATE baton.runner SET beat = beat + 1 WHERE number = $1::bigint AND beat > 0 "        \
	  "RETURNING beat")                                                                        \
	X(RUNNER_STOP, "UPDATE baton.runner SET beat = 0 WHERE number = $1::bigint "               \
	               "AND beat = $2::bigint RETURNING beat")                                     \
	X(RUNNER_LEASES, "SELECT " LEASE_COLUMNS " FROM baton.lease WHERE runner = $1::bigint")    \
	X(RUNNER_CLAIMS, "SELECT " CLAIM_COLUMNS " FROM baton.runner r JOIN baton.claim c "        \
	                 "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "            \
	                 "WHERE r.number = $1::bigint")                                            \
	X(RUNNER_BATCHES, "SELECT " BATCH_COLUMNS ", NULL::bytea FROM baton.batch b "              \
	                  "WHERE b.seq IN (SELECT unnest(c.seqs) FROM baton.runner r "             \
	                  "JOIN baton.claim c ON c.owner = r.owner "                               \
	                  "AND c.expires_at = 9223372036854775807 WHERE r.number = $1::bigint)")   \
	X(RUNNER_CANCELS, "SELECT c.head, c.fence FROM baton.runner r JOIN baton.claim c "         \
	                  "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "           \
	                  "WHERE r.number = $1::bigint AND EXISTS (SELECT 1 FROM baton.batch b "   \
	                  "WHERE b.seq = ANY(c.seqs) AND b.cancel) LIMIT $2::bigint")              \
	X(RUNNER_QUEUES, "SELECT " QUEUE_COLUMNS " FROM " PART_QUEUES " WHERE q.id IN ("           \
	                 "SELECT c.queue FROM baton.runner r JOIN baton.claim c "                  \
	                 "ON c.owner = r.owner AND c.expires_at = 9223372036854775807 "            \
	                 "WHERE r.number = $1::bigint)")                                           \
	X(XID, "SELECT " XID_COLUMNS)                                                              \
	X(SLEEP, "INSERT INTO baton.sleeper(since) SELECT "                                        \
	         "(extract(epoch FROM clock_timestamp()) * 1000)::bigint "                         \
	         "FROM (SELECT set_config('synchronous_commit', 'off', true)) o "                  \
	         "WHERE NOT EXISTS (SELECT 1 FROM baton.sleeper) RETURNING since")                 \
	X(WAKE, "SELECT set_config('synchronous_commit', 'off', true), baton.ring($1::text)")      \
	X(XID_STATUS, "SELECT pg_xact_status($1::bigint::text::xid8)")                             \
	X(VERSION, "SELECT (SELECT coalesce(sum(hashint8(q.xmin::text::bigint) "                   \
	           "+ coalesce(t.n, 0)), 0)::bigint FROM " PART_QUEUES ") * 31 + (SELECT "         \
	           "hashint8(s.xmin::text::bigint) FROM baton.state s)")                           \
	X(RING, "UPDATE baton.state SET rung = rung + 1")                                          \
	X(TIDY, "SELECT baton.tidy($1::bigint, $2::bigint) FROM (SELECT "                          \
	        "set_config('synchronous_commit', 'off', true)) o")                                \
	X(CHECK, "SELECT sentence, amount FROM baton.faults()")

#endif
