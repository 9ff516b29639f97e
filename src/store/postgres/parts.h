/* What statements are made of: columns, and parts that several have. */
#ifndef POSTGRES_PARTS_H
#define POSTGRES_PARTS_H

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
#define LINE_OF_K \
	"b.queue = k.queue AND b.lane BETWEEN k.line AND k.line AND b.line AND b.state = 1 "
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

#endif
