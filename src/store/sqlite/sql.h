/* Every statement that is prepared, by name. */
#ifndef SQLITE_SQL_H
#define SQLITE_SQL_H

#define SQL_LEASE_COLUMNS "held, owner, token, nonce, fence, counter, claimed_at, expires_at"
#define SQL_QUEUE_COLUMNS                                                                          \
	"id, name, mode, shards, paused, payload_max, waiting_max, attempts, backoff, base, cap, " \
	"lane_attempts, lane_backoff, lane_base, lane_cap, on_retry, on_dead, dedupe, keep, "      \
	"granter, counter, ready, delayed, running, dead, done, failed, waiting, mixed, top, "     \
	"floor, key_limit, hold_on_retry, on_conflict, key_waiting_max, key_fair, key_starts, "    \
	"key_window, key_ttl, guests, key_scope, key_class"
#define SQL_BATCH_COLUMNS "seq, queue, flags, put_at, due, born, lane, grp, retry, payload"
#define SQL_CLAIM_COLUMNS                                                                     \
	"head, fence, token, owner, queue, claimed_at, expires_at, offered, tried, granter, " \
	"lane, batches, lone, key, also"

/* What is claimed by the runner ?1, and, if keys count for each host (?2 is 2), by others of its
 * host: their owners are written as baton_owner_print() does; of the queue ?3. */
#define SQL_SITE                                                                                \
	"claim.owner IN (SELECT owner.id FROM runner JOIN owner ON owner.text = runner.owner "  \
	"WHERE runner.number = ?1 OR (?2 = 2 AND substr(runner.owner, 34, 1) <> ':' "           \
	"AND substr(runner.owner, 34, 32) = (SELECT substr(own.owner, 34, 32) FROM runner own " \
	"WHERE own.number = ?1))) AND claim.expires_at = 9223372036854775807 "                  \
	"AND claim.queue = ?3 "

/* Claims of several keys, of which ?1 is not the first. */
#define SQL_CLAIM_HELD \
	"(head, fence) IN (SELECT held.head, held.fence FROM held WHERE held.key = ?1) "

/* The lines of the key of line ?1 in other queues of class ?2. */
#define SQL_CLASS_OTHERS                                                                 \
	"FROM lane CROSS JOIN queue CROSS JOIN lane AS o WHERE lane.id = ?1 "            \
	"AND lane.holds IS NOT NULL AND queue.key_class = ?2 AND queue.key_class <> '' " \
	"AND o.queue = queue.id AND o.name = lane.name AND o.id <> ?1"

/* The queues of a class. */
#define SQL_CLASS_IDS "SELECT id FROM queue WHERE key_class = ? AND key_class <> ''"

/* length() of a column looks at none of its bytes. */
#define SQL_BULK_COLUMNS "first, queue, flags, put_at, count, length(keys)"
#define SQL_BULK_PLACES                                                                          \
	"rank = ?3 AND place BETWEEN ?4 * 2 AND ?5 * 2 AND seq BETWEEN ?4 AND ?5 AND tried = 2 " \
	"AND ifnull(last, ?5) >= ?6"
#define SQL_CHUNK_COLUMNS "first, bulk, queue, owner, claimed_at, expires_at, granter, salt, claims"

#define SQL_SCHEDULE_COLUMNS "name, cron, zone, missed, queue, lane, priority, payload, last, next"

#define SQL_RUNNER_COLUMNS                                                                      \
	"number, name, slot, endpoint, labels, owner, weight, ttl, since, host, queues, life, " \
	"guardian, wish, state"

#define SQL_TABLE(X)                                                                               \
	X(BEGIN, "BEGIN IMMEDIATE")                                                                \
	X(BEGIN_READ, "BEGIN")                                                                     \
	X(COMMIT, "COMMIT")                                                                        \
	X(ROLLBACK, "ROLLBACK")                                                                    \
	X(SAVE, "SAVEPOINT one")                                                                   \
	X(SAVE_KEEP, "RELEASE one")                                                                \
	X(SAVE_BACK, "ROLLBACK TO one")                                                            \
	X(VERSION, "PRAGMA data_version")                                                          \
	X(TABLES, "PRAGMA user_version")                                                           \
	X(STATE_NEW, "INSERT INTO state VALUES(1, 0, 0, ?, ?, 0, 0, ?, 0, 0, x'')")                \
	X(STATE_RAISE, "UPDATE state SET copied = 0, granter_floor = max(granter_floor, ?1, "      \
	               "?3 + (SELECT ifnull(max(fence + (counter >> 20)), 0) FROM lease "          \
	               "WHERE subject GLOB 'lane/*' OR subject GLOB 'pull/*'), "                   \
	               "?3 + (SELECT ifnull(max(granter + (counter >> 20)), 0) FROM queue), "      \
	               "?3 + (SELECT ifnull(max(fence + (counter >> 20)), 0) FROM shard)), "       \
	               "plain_floor = max(plain_floor, ?2, "                                       \
	               "?3 + (SELECT ifnull(max(fence), 0) FROM lease "                            \
	               "WHERE NOT (subject GLOB 'lane/*' OR subject GLOB 'pull/*')))")             \
	X(LEASE_END_ALL, "UPDATE lease SET held = 0")                                              \
	X(CLAIM_END_ALL, "UPDATE claim SET token = randomblob(16), "                               \
	                 "expires_at = min(expires_at, ?)")                                        \
	X(STATE_READ, "SELECT seq, lane, granter_floor, plain_floor, swept, name, shards, young "  \
	              "FROM state")                                                                \
	X(STATE_WRITE, "UPDATE state SET seq = ?, lane = ?, swept = ?, shards = ?, young = ?")     \
	X(LEASE_READ, "SELECT " SQL_LEASE_COLUMNS " FROM lease WHERE subject = ?")                 \
	X(LEASE_WRITE, "INSERT OR REPLACE INTO lease(subject, " SQL_LEASE_COLUMNS ") "             \
	               "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")                                        \
	X(LEASE_COUNT, "UPDATE lease SET counter = ? WHERE subject = ?")                           \
	X(LEASE_LIST, "SELECT " SQL_LEASE_COLUMNS ", subject FROM lease "                          \
	              "WHERE subject > ?1 AND subject >= ?2 AND held AND expires_at > ?3 "         \
	              "ORDER BY subject")                                                          \
	X(QUEUE_READ, "SELECT " SQL_QUEUE_COLUMNS " FROM queue WHERE name = ?")                    \
	X(QUEUE_READ_ID, "SELECT " SQL_QUEUE_COLUMNS " FROM queue WHERE id = ?")                   \
	X(QUEUE_LIST, "SELECT " SQL_QUEUE_COLUMNS " FROM queue WHERE name > ? "                    \
	              "ORDER BY name LIMIT ?")                                                     \
	X(QUEUE_WRITE, "INSERT OR REPLACE INTO queue(" SQL_QUEUE_COLUMNS ") "                      \
	               "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
	               "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")              \
	X(QUEUE_COUNT,                                                                             \
	  "UPDATE queue SET granter = ?, counter = ?, ready = ?, delayed = ?, "                    \
	  "running = ?, dead = ?, done = ?, failed = ?, waiting = ?, mixed = ?, top = ?, "         \
	  "floor = ? WHERE id = ?")                                                                \
	X(QUEUE_LAST, "SELECT ifnull(max(id), 0) FROM queue")                                      \
	X(BATCH_ADD, "INSERT INTO batch(" SQL_BATCH_COLUMNS ") "                                   \
	             "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                       \
	X(BATCH_READ, "SELECT " SQL_BATCH_COLUMNS " FROM batch WHERE seq = ?")                     \
	X(BATCH_BORN, "SELECT seq FROM batch WHERE born = ?")                                      \
	X(BATCH_DROP, "DELETE FROM batch WHERE seq = ?")                                           \
	X(BATCH_MOVE, "UPDATE batch SET seq = ?1, born = ifnull(born, ?2), due = NULL "            \
	              "WHERE seq = ?2")                                                            \
	X(BATCH_LIST, "SELECT " SQL_BATCH_COLUMNS " FROM batch WHERE seq > ? ORDER BY seq")        \
	X(BATCH_LIST_DEAD,                                                                         \
	  "SELECT " SQL_BATCH_COLUMNS " FROM (SELECT seq AS number FROM dead WHERE queue = ? "     \
	  "AND seq > ? ORDER BY seq) CROSS JOIN batch ON seq = number")                            \
	X(BATCH_LIST_DEAD_ALL, "SELECT " SQL_BATCH_COLUMNS " FROM batch WHERE seq > ? "            \
	                       "AND seq IN (SELECT seq FROM dead) ORDER BY seq")                   \
	X(BATCH_LIST_DONE,                                                                         \
	  "SELECT " SQL_BATCH_COLUMNS " FROM (SELECT seq AS number FROM done WHERE seq > ? "       \
	  "ORDER BY seq) CROSS JOIN batch ON seq = number")                                        \
	X(BATCH_LIST_RETRY, "SELECT " SQL_BATCH_COLUMNS " FROM batch WHERE seq > ? "               \
	                    "AND seq IN (SELECT seq FROM later WHERE retry > 0) ORDER BY seq")     \
	X(BATCH_LIST_CLAIMED,                                                                      \
	  "SELECT " SQL_BATCH_COLUMNS " FROM batch WHERE seq > ? AND (seq IN (SELECT head "        \
	  "FROM claim) OR CASE WHEN instr(lane, char(1)) > 1 "                                     \
	  "THEN substr(lane, 1, instr(lane, char(1)) - 1) ELSE lane END IN (SELECT name "          \
	  "FROM lane WHERE id IN (SELECT lane FROM claim WHERE batches IS NOT NULL))) "            \
	  "ORDER BY seq")                                                                          \
	X(HEAD_ADD, "INSERT INTO head(pool, rank, place, seq, lane, tried) "                       \
	            "VALUES(?, ?, ?, ?, ?, ?)")                                                    \
	X(HEAD_ADD_BULK, "INSERT INTO head(pool, rank, place, seq, tried, last) "                  \
	                 "VALUES(?, ?, ?, ?, 2, ?)")                                               \
	X(HEAD_DROP, "DELETE FROM head WHERE pool = ? AND rank = ? AND place = ? AND seq = ?")     \
	X(HEAD_LIST, "SELECT rank, place, seq, lane, tried, last FROM head WHERE pool = ? "        \
	             "ORDER BY rank, place, seq LIMIT ?")                                          \
	X(HEAD_NEXT, "SELECT pool FROM head WHERE pool >= ? ORDER BY pool LIMIT 1")                \
	X(HEAD_STRAY,                                                                              \
	  "SELECT pool, rank, place, seq, lane, tried, last FROM head WHERE pool >= ? "            \
	  "AND pool <= ? LIMIT ?")                                                                 \
	X(HEAD_OLDEST, "SELECT seq FROM head WHERE pool = ? AND rank = ? "                         \
	               "ORDER BY place, seq LIMIT 1")                                              \
	X(LANE_FIND, "SELECT id FROM lane WHERE queue = ? AND name = ?")                           \
	X(LANE_READ, "SELECT held, head, rank, shard, holds, turn, place, until, asks, asked, "    \
	             "guest, also FROM lane WHERE id = ?")                                         \
	X(LANE_HAS, "SELECT id FROM lane WHERE id = ?")                                            \
	X(CLASS_LINES, "SELECT o.queue, o.id " SQL_CLASS_OTHERS)                                   \
	X(CLASS_HOLDS, "SELECT ifnull(sum(o.holds), 0) " SQL_CLASS_OTHERS)                         \
	X(CLASS_QUEUES, "SELECT id FROM queue WHERE key_class = ? AND key_class <> '' "            \
	                "AND id <> ? ORDER BY id")                                                 \
	X(LANE_ASK, "UPDATE lane SET asks = ?, asked = ?, also = ? WHERE id = ?")                  \
	X(LANE_GUEST, "UPDATE lane SET guest = ? WHERE id = ?")                                    \
	X(LANE_NO_GUEST, "UPDATE lane SET guest = 0 WHERE id = ? AND guest = ?")                   \
	X(GUEST_ADD, "INSERT OR REPLACE INTO guest(key, seq, lane, tried) VALUES(?, ?, ?, ?)")     \
	X(GUEST_DROP, "DELETE FROM guest WHERE key = ? AND seq = ?")                               \
	X(GUEST_FIRST, "SELECT guest.seq, guest.lane, guest.tried, lane.asks, lane.also "          \
	               "FROM guest JOIN lane ON lane.id = guest.lane WHERE guest.key = ? "         \
	               "ORDER BY guest.seq LIMIT 1")                                               \
	X(HELD_ADD, "INSERT INTO held(key, head, fence) VALUES(?, ?, ?)")                          \
	X(HELD_DROP, "DELETE FROM held WHERE key = ? AND head = ? AND fence = ?")                  \
	X(LANE_NAME, "SELECT name FROM lane WHERE id = ?")                                         \
	X(LANE_LOOK, "SELECT id, held, (SELECT seq FROM line WHERE lane = id ORDER BY seq "        \
	             "LIMIT 1), holds, until, (SELECT seq FROM guest WHERE key = id "              \
	             "ORDER BY seq LIMIT 1) FROM lane WHERE queue = ? AND name = ?")               \
	X(LANE_KEYED, "SELECT id FROM lane WHERE id > ? AND queue = ? AND holds IS NOT NULL "      \
	              "ORDER BY id LIMIT ?")                                                       \
	X(LANE_FEW, "SELECT name FROM lane WHERE queue = ? AND name >= char(1) "                   \
	            "AND name < char(2) LIMIT ?")                                                  \
	X(LANE_ADD, "INSERT INTO lane(id, queue, name, shard, holds) VALUES(?, ?, ?, ?, ?)")       \
	X(LANE_TURN, "UPDATE lane SET turn = ? WHERE id = ?")                                      \
	X(LANE_NO_TURNS, "UPDATE lane SET turn = 0 WHERE queue = ? AND turn > 0")                  \
	X(LANE_UNTIL, "UPDATE lane SET until = ? WHERE queue = ? AND name = ? AND until <> ?1 "    \
	              "RETURNING queue, id")                                                       \
	X(CLASS_UNTIL, "UPDATE lane SET until = ? WHERE queue IN (" SQL_CLASS_IDS ") "             \
	               "AND name = ? AND until <> ?1 RETURNING queue, id")                         \
	X(LANE_WAIT, "UPDATE lane SET until = ifnull((SELECT until FROM rate WHERE queue = ? "     \
	             "AND name = ?), 0) WHERE id = ?")                                             \
	X(CLASS_WAIT,                                                                              \
	  "UPDATE lane SET until = ifnull((SELECT until FROM rate WHERE queue IN (" SQL_CLASS_IDS  \
	  ") AND name = ?), 0) WHERE id = ?")                                                      \
	X(RATE_READ, "SELECT id, until, starts FROM rate WHERE queue = ? AND name = ?")            \
	X(CLASS_RATE, "SELECT id, until, starts FROM rate WHERE queue IN (" SQL_CLASS_IDS ") "     \
	              "AND name = ?")                                                              \
	X(RATE_MOVE, "UPDATE rate SET queue = ? WHERE queue = ?")                                  \
	X(RATE_DROP_ALL, "DELETE FROM rate WHERE queue = ?")                                       \
	X(RATE_FULL, "SELECT until FROM rate WHERE queue = ? AND name = ? AND until > 0")          \
	X(RATE_FORGET, "DELETE FROM rate WHERE id IN (SELECT rate.id FROM queue CROSS JOIN rate "  \
	               "ON rate.queue = queue.id WHERE queue.key_scope = 1 AND rate.name > ? "     \
	               "AND rate.name < ? LIMIT ?)")                                               \
	X(RATE_ADD, "INSERT INTO rate(until, over, starts, queue, name) VALUES(?, ?, ?, ?, ?)")    \
	X(RATE_WRITE, "UPDATE rate SET until = ?, over = ?, starts = ? WHERE id = ?")              \
	X(RATE_FREE, "UPDATE rate SET until = 0 WHERE id = ?")                                     \
	X(RATE_DROP, "DELETE FROM rate WHERE id = ?")                                              \
	X(RATE_DUE, "SELECT id, name, starts FROM rate WHERE until > 0 AND queue = ? "             \
	            "AND until <= ? ORDER BY until LIMIT ?")                                       \
	X(RATE_AHEAD, "SELECT id, name, starts FROM rate WHERE until > 0 AND queue = ? "           \
	              "AND until > ? ORDER BY until LIMIT ?")                                      \
	X(RATE_NEXT, "SELECT id, name, starts FROM rate WHERE queue = ? AND name > ? "             \
	             "ORDER BY name LIMIT ?")                                                      \
	X(RATE_FIRST, "SELECT min(until) FROM rate WHERE until > 0 AND queue = ? AND until > ?")   \
	X(RATE_QUEUES,                                                                             \
	  "WITH RECURSIVE q(queue) AS (SELECT min(queue) FROM rate WHERE until > 0 UNION ALL "     \
	  "SELECT (SELECT min(queue) FROM rate WHERE until > 0 AND queue > q.queue) FROM q "       \
	  "WHERE queue IS NOT NULL) SELECT queue FROM q WHERE queue IS NOT NULL AND (SELECT "      \
	  "min(until) FROM rate WHERE until > 0 AND rate.queue = q.queue) <= ? LIMIT ?")           \
	X(RATE_OLD, "SELECT id FROM rate WHERE until = 0 AND over <= ? ORDER BY over LIMIT ?")     \
	X(LANE_COUNT, "UPDATE lane SET holds = holds + ? WHERE id = ? AND holds IS NOT NULL")      \
	X(LANE_DROP, "DELETE FROM lane WHERE id = ?")                                              \
	X(LANE_HEAD, "UPDATE lane SET head = ?, rank = ?, place = ? WHERE id = ?")                 \
	X(LANE_HOLD, "UPDATE lane SET held = (SELECT min(seq) FROM dead WHERE holds = ?1) "        \
	             "WHERE id = ?1")                                                              \
	X(LINE_ADD, "INSERT INTO line(lane, seq, tried) VALUES(?, ?, ?)")                          \
	X(LINE_TRY, "INSERT OR REPLACE INTO line(lane, seq, tried) VALUES(?, ?, 1)")               \
	X(LINE_DROP, "DELETE FROM line WHERE lane = ? AND seq = ?")                                \
	X(LINE_COUNT, "SELECT count(*) FROM (SELECT 1 FROM line WHERE lane = ? LIMIT ?)")          \
	X(LINES_COUNT, "SELECT count(*) FROM (SELECT 1 FROM lane CROSS JOIN line "                 \
	               "ON line.lane = lane.id WHERE lane.queue = ? AND lane.name > ? "            \
	               "AND lane.name < ? LIMIT ?)")                                               \
	X(LINES_SHARDS, "SELECT shard FROM lane WHERE queue = ? AND name > ? AND name < ? "        \
	                "LIMIT ?")                                                                 \
	X(LINE_LAST, "SELECT max(seq) FROM line WHERE lane = ?")                                   \
	X(LINE_FIRST, "SELECT seq, tried FROM line WHERE lane = ? ORDER BY seq LIMIT 1")           \
	X(LINE_PAGE, "SELECT seq, tried FROM line WHERE lane = ? AND seq > ? "                     \
	             "ORDER BY seq LIMIT ?")                                                       \
	X(LINE_OF_LANES, "SELECT line.lane, line.seq FROM lane JOIN line ON line.lane = lane.id "  \
	                 "WHERE lane.queue = ?1 AND lane.holds IS NULL AND "                       \
	                 "(lane.id, line.seq) > (?2, ?3) ORDER BY lane.id, line.seq LIMIT ?4")     \
	X(WISH_ADD, "INSERT INTO wish(queue, line, seq) VALUES(?, ?, ?)")                          \
	X(WISH_DROP, "DELETE FROM wish WHERE queue = ? AND line = ? AND seq = ?")                  \
	X(WISH_COUNT, "SELECT count(*) FROM (SELECT 1 FROM wish WHERE queue = ? AND line = ? "     \
	              "LIMIT ?)")                                                                  \
	X(WISH_DROP_ALL, "DELETE FROM wish WHERE queue = ?")                                       \
	X(KEPT_ADD, "INSERT INTO kept(lane, seq) VALUES(?, ?)")                                    \
	X(KEPT_DROP, "DELETE FROM kept WHERE lane = ? AND seq = ?")                                \
	X(KEPT_FIRST, "SELECT seq FROM kept WHERE lane = ? ORDER BY seq LIMIT 1")                  \
	X(LATER_ADD, "INSERT INTO later(queue, due, seq, retry) VALUES(?, ?, ?, ?)")               \
	X(LATER_DROP, "DELETE FROM later WHERE queue = ? AND due = ? AND seq = ?")                 \
	X(LATER_HAS, "SELECT retry FROM later WHERE queue = ? AND due = ? AND seq = ?")            \
	X(LATER_DUE, "SELECT due, seq, retry FROM later WHERE queue = ? AND due <= ? "             \
	             "ORDER BY due, seq LIMIT ?")                                                  \
	X(LATER_FIRST, "SELECT min(due) FROM later WHERE queue = ? AND due > ?")                   \
	X(TROUBLE_READ, "SELECT attempts, fence, error, due, cancel, rival FROM trouble "          \
	                "WHERE seq = ?")                                                           \
	X(TROUBLE_WRITE, "INSERT OR REPLACE INTO trouble(seq, attempts, fence, error, due, "       \
	                 "cancel, rival) VALUES(?, ?, ?, ?, ?, ?, ?)")                             \
	X(TROUBLE_DROP, "DELETE FROM trouble WHERE seq = ?")                                       \
	X(DEAD_ADD, "INSERT INTO dead(queue, seq, at) VALUES(?, ?, ?)")                            \
	X(DEAD_HOLD, "UPDATE dead SET holds = ? WHERE queue = ? AND seq = ?")                      \
	X(DEAD_HAS, "SELECT 1 FROM dead WHERE queue = ? AND seq = ?")                              \
	X(DEAD_AT, "SELECT at FROM dead WHERE queue = ? AND seq = ?")                              \
	X(DEAD_DROP, "DELETE FROM dead WHERE queue = ? AND seq = ?")                               \
	X(DONE_ADD, "INSERT INTO done(seq, at, until, result) VALUES(?, ?, ?, ?)")                 \
	X(DONE_SKIP, "INSERT INTO done(seq, at, until, result, rival) VALUES(?, ?, ?, x'', ?)")    \
	X(DONE_UNTIL, "SELECT until, rival FROM done WHERE seq = ?")                               \
	X(DONE_READ, "SELECT at, until, result, rival FROM done WHERE seq = ?")                    \
	X(DONE_OLD, "SELECT seq FROM done WHERE until <= ? ORDER BY until LIMIT ?")                \
	X(DONE_DROP, "DELETE FROM done WHERE seq = ?")                                             \
	X(OWNER_FIND, "SELECT id FROM owner WHERE text = ?")                                       \
	X(OWNER_READ, "SELECT text FROM owner WHERE id = ?")                                       \
	X(OWNER_ADD, "INSERT INTO owner(text, claims, seen_at) VALUES(?, 0, ?) RETURNING id")      \
	X(OWNER_COUNT, "UPDATE owner SET claims = claims + ?, seen_at = ? WHERE id = ?")           \
	X(OWNER_OLD, "SELECT id FROM owner WHERE claims = 0 AND seen_at < ? LIMIT ?")              \
	X(OWNER_DROP, "DELETE FROM owner WHERE id = ?")                                            \
	X(CLAIM_ADD, "INSERT INTO claim(" SQL_CLAIM_COLUMNS ") "                                   \
	             "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                        \
	X(CLAIM_MELT, "UPDATE claim SET lane = ?, lone = NULL WHERE head = ? AND fence = ?")       \
	X(LONE_ADD, "INSERT OR IGNORE INTO lone(hash, seq) SELECT ?1, ?2 WHERE NOT EXISTS ("       \
	            "SELECT 1 FROM lane WHERE queue = ?3 AND name = ?4)")                          \
	X(LONE_FIND, "SELECT seq FROM lone WHERE hash = ?")                                        \
	X(LONE_NEXT, "SELECT lone.seq FROM lone CROSS JOIN batch ON batch.seq = lone.seq "         \
	             "WHERE lone.hash > ? AND batch.queue = ? ORDER BY lone.hash LIMIT 1")         \
	X(LONE_DROP, "DELETE FROM lone WHERE hash = ?")                                            \
	X(LONE_SET, "INSERT OR REPLACE INTO lone(hash, seq) VALUES(?, ?)")                         \
	X(LONE_END, "DELETE FROM lone WHERE hash = ?1 AND seq = ?2 AND NOT EXISTS ("               \
	            "SELECT 1 FROM batch WHERE batch.seq = ?2)")                                   \
	X(LONE_FEW, "SELECT hash FROM lone LIMIT ?")                                               \
	X(CLAIM_READ, "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE head = ? AND fence = ?")      \
	X(CLAIM_OF_SINGLE, "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE head = ?")               \
	X(CLAIM_OF_LANE, "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE lane = ? ORDER BY head")   \
	X(CLAIM_OFFERED, "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE lane = ? "                 \
	                 "AND offered = 1 ORDER BY head")                                          \
	X(CLAIM_OF_KEY,                                                                            \
	  "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE key = ?1 UNION ALL "                      \
	  "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE " SQL_CLAIM_HELD "ORDER BY 1")            \
	X(CLAIM_LATE_OF_KEY, "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE key = ?1 "             \
	                     "AND offered = 1 UNION ALL SELECT " SQL_CLAIM_COLUMNS                 \
	                     " FROM claim WHERE " SQL_CLAIM_HELD "AND offered = 1 ORDER BY 1")     \
	X(CLAIM_HAS_KEY, "SELECT 1 FROM claim WHERE key = ?1 UNION ALL "                           \
	                 "SELECT 1 FROM held WHERE held.key = ?1 LIMIT 1")                         \
	X(CLAIM_BUSY, "SELECT 1 FROM claim WHERE lane = ? AND offered = 0 LIMIT 1")                \
	X(CLAIM_RENEW, "UPDATE claim SET expires_at = ?, offered = 0 "                             \
	               "WHERE head = ? AND fence = ?")                                             \
	X(CLAIM_TRY, "UPDATE claim SET tried = 1 WHERE head = ? AND fence = ?")                    \
	X(CLAIM_REST, "UPDATE claim SET batches = ? WHERE head = ? AND fence = ?")                 \
	X(CLAIM_OFFER, "UPDATE claim SET offered = 1 WHERE head = ? AND fence = ?")                \
	X(CLAIM_DROP, "DELETE FROM claim WHERE head = ? AND fence = ?")                            \
	X(CLAIM_EXPIRED, "SELECT head, fence FROM claim WHERE offered = 0 AND queue = ? "          \
	                 "AND expires_at <= ? ORDER BY expires_at, head LIMIT ?")                  \
	X(CLAIM_BOUND, "SELECT head, fence FROM claim WHERE owner = ? "                            \
	               "AND expires_at = 9223372036854775807")                                     \
	X(CLAIM_CANCELS, "SELECT claim.head, claim.fence, claim.token, claim.owner, claim.queue, " \
	                 "claim.claimed_at, claim.expires_at, claim.offered, claim.tried, "        \
	                 "claim.granter, claim.lane, claim.batches, claim.lone, claim.key, "       \
	                 "claim.also FROM runner "                                                 \
	                 "JOIN owner ON owner.text = runner.owner JOIN claim "                     \
	                 "ON claim.owner = owner.id AND expires_at = 9223372036854775807 "         \
	                 "WHERE runner.number = ? AND claim.tried = 1")                            \
	X(SITE_USES, "SELECT lane.name, count(*) FROM claim JOIN lane ON lane.id = claim.lane "    \
	             "WHERE " SQL_SITE "GROUP BY lane.id")                                         \
	X(SITE_CLAIMS, "SELECT " SQL_CLAIM_COLUMNS " FROM claim WHERE " SQL_SITE                   \
	               "AND lane IN (SELECT id FROM lane WHERE queue = ?3 AND name > ?4 "          \
	               "AND name < ?5)")                                                           \
	X(CLAIM_FIRST, "SELECT min(expires_at) FROM claim WHERE offered = 0 AND queue = ? "        \
	               "AND expires_at > ?")                                                       \
	X(SOURCE_READ, "SELECT id, content, until FROM source WHERE hash = ?")                     \
	X(SOURCE_WRITE, "INSERT OR REPLACE INTO source(hash, id, content, until, look) "           \
	                "VALUES(?1, ?2, ?3, ?4, ?4)")                                              \
	X(SOURCE_OLD, "SELECT hash, id FROM source WHERE look <= ? ORDER BY look LIMIT ?")         \
	X(SOURCE_DROP, "DELETE FROM source WHERE hash = ?")                                        \
	X(SOURCE_KEEP, "UPDATE source SET look = ? WHERE hash = ?")                                \
	X(FINISHED_ADD, "INSERT OR REPLACE INTO finished(head, fence, token, state, until) "       \
	                "VALUES(iif(EXISTS(SELECT 1 FROM finished WHERE head = ?1), -?2, ?1), "    \
	                "?2, ?3, ?4, ?5)")                                                         \
	X(FINISHED_READ, "SELECT token, state, until FROM finished WHERE head IN (?1, -?2) "       \
	                 "AND fence = ?2")                                                         \
	X(FINISHED_NEXT, "SELECT head, until FROM finished WHERE head > ? "                        \
	                 "ORDER BY head LIMIT ?")                                                  \
	X(FINISHED_DROP, "DELETE FROM finished WHERE head = ?")                                    \
	X(BULK_ADD, "INSERT INTO bulk(first, queue, flags, put_at, count, jobs, keys) "            \
	            "VALUES(?, ?, ?, ?, ?, ?, ?)")                                                 \
	X(BULK_FIND, "SELECT " SQL_BULK_COLUMNS " FROM bulk WHERE first <= ? "                     \
	             "ORDER BY first DESC LIMIT 1")                                                \
	X(BULK_READ, "SELECT " SQL_BULK_COLUMNS ", jobs, keys FROM bulk WHERE first <= ? "         \
	             "ORDER BY first DESC LIMIT 1")                                                \
	X(BULK_KEYS, "SELECT keys FROM bulk WHERE first = ? AND length(keys) > 0")                 \
	X(BULK_KEYED, "SELECT first FROM bulk WHERE first > ? AND queue = ? "                      \
	              "AND length(keys) > 0 ORDER BY first LIMIT 1")                               \
	X(BULK_KEYED_NEXT, "SELECT first FROM bulk WHERE first > ? AND length(keys) > 0 "          \
	                   "ORDER BY first LIMIT 1")                                               \
	X(BULK_NEXT, "SELECT first FROM bulk WHERE first > ? ORDER BY first LIMIT 1")              \
	X(BULK_CLAIMED, "SELECT bulk FROM chunk WHERE first >= ? ORDER BY first LIMIT 1")          \
	X(BULK_HEAD, "SELECT pool, seq, last FROM head WHERE pool = ?1 AND " SQL_BULK_PLACES       \
	             " UNION ALL SELECT pool, seq, last FROM head WHERE pool = ?2 "                \
	             "AND " SQL_BULK_PLACES)                                                       \
	X(BULK_DROP, "DELETE FROM bulk WHERE first = ?")                                           \
	X(CHUNK_ADD, "INSERT INTO chunk(" SQL_CHUNK_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)") \
	X(CHUNK_REST, "UPDATE chunk SET salt = ?, claims = ? WHERE first = ?")                     \
	X(CHUNK_FIND, "SELECT " SQL_CHUNK_COLUMNS " FROM chunk WHERE first <= ? "                  \
	              "ORDER BY first DESC LIMIT 1")                                               \
	X(CHUNK_ANY, "SELECT first FROM chunk WHERE first BETWEEN ? AND ? LIMIT 1")                \
	X(CHUNK_DROP, "DELETE FROM chunk WHERE first = ?")                                         \
	X(CHUNK_OWNED, "SELECT first FROM chunk WHERE owner = ? "                                  \
	               "AND expires_at = 9223372036854775807 LIMIT 1")                             \
	X(CHUNK_EXPIRED, "SELECT first FROM chunk WHERE queue = ? AND expires_at <= ? "            \
	                 "ORDER BY expires_at, first LIMIT 1")                                     \
	X(CHUNK_FIRST, "SELECT min(expires_at) FROM chunk WHERE queue = ? AND expires_at > ?")     \
	X(CHUNK_END_ALL, "UPDATE chunk SET salt = randomblob(16), "                                \
	                 "expires_at = min(expires_at, ?)")                                        \
	X(REPLY_ADD, "INSERT INTO reply(first, until, claims) VALUES(?, ?, ?)")                    \
	X(REPLY_FIND, "SELECT until, claims FROM reply WHERE first > ? AND first <= ?")            \
	X(REPLY_OLD, "SELECT first FROM reply WHERE until <= ? ORDER BY until LIMIT ?")            \
	X(REPLY_DROP, "DELETE FROM reply WHERE first = ?")                                         \
	X(SCHEDULE_SET, "INSERT INTO schedule(" SQL_SCHEDULE_COLUMNS ") "                          \
	                "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO UPDATE SET "    \
	                "last = iif(cron = excluded.cron AND zone = excluded.zone, last, "         \
	                "excluded.last), "                                                         \
	                "next = iif(cron = excluded.cron AND zone = excluded.zone, next, "         \
	                "excluded.next), "                                                         \
	                "cron = excluded.cron, zone = excluded.zone, missed = excluded.missed, "   \
	                "queue = excluded.queue, lane = excluded.lane, "                           \
	                "priority = excluded.priority, payload = excluded.payload")                \
	X(SCHEDULE_HAS, "SELECT 1 FROM schedule WHERE name = ?")                                   \
	X(SCHEDULE_DROP, "DELETE FROM schedule WHERE name = ?")                                    \
	X(SCHEDULE_LIST, "SELECT " SQL_SCHEDULE_COLUMNS " FROM schedule WHERE name > ? "           \
	                 "ORDER BY name LIMIT ?")                                                  \
	X(SCHEDULE_READ, "SELECT " SQL_SCHEDULE_COLUMNS " FROM schedule WHERE name = ?")           \
	X(SCHEDULE_MOVE, "UPDATE schedule SET last = ?, next = ? WHERE name = ?")                  \
	X(RUNNER_COUNT, "UPDATE state SET runner = runner + 1 RETURNING runner")                   \
	X(RUNNER_ADD, "INSERT INTO runner(" SQL_RUNNER_COLUMNS ") "                                \
	              "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                       \
	X(RUNNER_FIND, "SELECT " SQL_RUNNER_COLUMNS " FROM runner WHERE name = ?")                 \
	X(RUNNER_READ, "SELECT " SQL_RUNNER_COLUMNS " FROM runner WHERE number = ?")               \
	X(RUNNER_OWNER, "SELECT owner FROM runner WHERE number = ?")                               \
	X(RUNNER_NEXT, "SELECT " SQL_RUNNER_COLUMNS " FROM runner WHERE number > ? "               \
	               "ORDER BY number LIMIT 1")                                                  \
	X(RUNNER_SLOTS, "SELECT slot FROM runner ORDER BY slot")                                   \
	X(RUNNER_MARK, "UPDATE runner SET proofs = proofs + 1, wish = iif(?1 > 0, ?1, wish), "     \
	               "state = ifnull(?2, state), report = ifnull(?5, report), "                  \
	               "reported = iif(?5 IS NULL, reported, ?6) WHERE number = ?3 OR name = ?4 "  \
	               "RETURNING number")                                                         \
	X(RUNNER_REPORT, "SELECT report, reported FROM runner WHERE number = ? AND reported > 0")  \
	X(RUNNER_DROP, "DELETE FROM runner WHERE number = ?")                                      \
	X(SHARD_READ, "SELECT runner, fence, counter FROM shard WHERE queue = ? AND number = ?")   \
	X(SHARD_WRITE, "INSERT OR REPLACE INTO shard(queue, number, runner, fence, counter) "      \
	               "VALUES(?, ?, ?, ?, ?)")                                                    \
	X(SHARD_HELD, "SELECT queue, number, fence FROM shard WHERE runner = ? "                   \
	              "ORDER BY queue, number")                                                    \
	X(SHARD_COUNT, "UPDATE shard SET counter = ? WHERE queue = ? AND number = ?")              \
	X(SHARD_FREE, "UPDATE shard SET runner = NULL WHERE runner = ?")

enum sql {
#define SQL_NAME(name, text) SQL_##name,
	SQL_TABLE(SQL_NAME)
#undef SQL_NAME
	SQL_END
};

#endif
