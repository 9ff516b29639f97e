/* Whether everything in an SQLite file fits together. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "store/sqlite/sqlite.h"

/* Each looks at every row a few times at most: what is stored may be a lot.
 *
 * What must not be found, and what it means when it is: "N of them" is put before. */
struct rule {
	const char *sql;
	const char *sentence;
};

static const struct rule rules[] = {
	{"SELECT count(*) FROM head WHERE tried < 2 AND seq NOT IN (SELECT seq FROM batch)",
         "heads have no batch"},
	{"SELECT count(*) FROM head WHERE tried = 2 AND (seq > ifnull(last, seq)"
         " OR ifnull(last, seq) >= ifnull((SELECT first + count"
         " FROM bulk WHERE first <= head.seq ORDER BY first DESC LIMIT 1), 0))",
         "heads have no row of jobs"},
	{"SELECT count(*) FROM head WHERE tried = 2 AND EXISTS (SELECT 1 FROM head AS o"
         " WHERE o.pool = head.pool AND o.rank = head.rank AND o.place > head.place"
         " AND o.place <= head.last * 2 AND o.tried = 2)",
         "heads stand for jobs that others stand for"},
	{"SELECT count(*) FROM bulk WHERE queue NOT IN (SELECT id FROM queue)",
         "rows of jobs have no queue"},
	{"SELECT count(*) FROM bulk WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.bulk ="
         " bulk.first AND chunk.first BETWEEN bulk.first AND bulk.first + count - 1)"
         " AND NOT EXISTS (SELECT 1 FROM head WHERE tried = 2"
         " AND pool IN (queue << 13, (queue << 13) | ((flags >> 8) + 1))"
         " AND rank = 9 - (flags >> 4 & 15)"
         " AND place BETWEEN first * 2 AND (first + count - 1) * 2)",
         "rows of jobs are in no state"},
	{"SELECT count(*) FROM chunk WHERE NOT EXISTS (SELECT 1 FROM bulk WHERE bulk.first ="
         " chunk.bulk AND chunk.first < bulk.first + bulk.count)",
         "rows of claims have no jobs"},
	{"SELECT count(*) FROM chunk WHERE owner NOT IN (SELECT id FROM owner)",
         "rows of claims have no owner"},
	{"SELECT count(*) FROM bulk WHERE first + count - 1 > (SELECT seq FROM state)",
         "rows of jobs have a number that was not given out"},
	{"SELECT count(*) FROM line WHERE seq NOT IN (SELECT seq FROM batch)",
         "places in a line have no batch"},
	{"SELECT count(*) FROM line WHERE lane NOT IN (SELECT id FROM lane)",
         "places in a line have no lane"},
	{"SELECT count(*) FROM lane WHERE held IS NULL AND ifnull(holds, 0) = 0"
         " AND id NOT IN (SELECT lane FROM line) AND id NOT IN (SELECT key FROM guest)"
         " AND id NOT IN (SELECT key FROM claim WHERE key IS NOT NULL)"
         " AND id NOT IN (SELECT key FROM held)",
         "lanes are empty"},
	{"SELECT count(*) FROM claim WHERE key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM lane"
         " WHERE lane.id = claim.key AND holds IS NOT NULL AND lane.queue = claim.queue)",
         "claims have no key"},
	{"SELECT count(*) FROM claim LEFT JOIN batch ON batch.seq = claim.head LEFT JOIN lane"
         " ON lane.id = claim.key WHERE claim.batches IS NULL AND claim.lone IS NULL"
         " AND ifnull(lane.name, '') || iif(claim.also IS NULL, '', (SELECT"
         " ifnull(group_concat(name, ''), '') FROM (SELECT o.name FROM held JOIN lane AS o"
         " ON o.id = held.key WHERE held.head = claim.head AND held.fence = claim.fence"
         " ORDER BY o.name))) <> iif(instr(batch.lane, char(1)) > 1,"
         " substr(batch.lane, instr(batch.lane, char(1))), '')",
         "claims have another key than their batch"},
	{"SELECT count(*) FROM held WHERE NOT EXISTS (SELECT 1 FROM claim WHERE claim.head ="
         " held.head AND claim.fence = held.fence AND claim.key <> held.key"
         " AND claim.also IS NOT NULL) OR held.key NOT IN (SELECT id FROM lane"
         " WHERE holds IS NOT NULL)",
         "keys are held by claims that do not know"},
	{"SELECT count(*) FROM claim LEFT JOIN (SELECT head, fence, count(*) AS n FROM held"
         " GROUP BY head, fence) AS h ON h.head = claim.head AND h.fence = claim.fence"
         " WHERE ifnull(length(also), 0) / 8 <> ifnull(n, 0)",
         "claims have keys that do not know"},
	{"SELECT count(*) FROM guest LEFT JOIN lane ON lane.id = guest.lane"
         " AND lane.asked = guest.seq"
         " LEFT JOIN lane AS line ON line.id = guest.key"
         " LEFT JOIN batch ON batch.seq = guest.seq WHERE lane.id IS NULL OR line.holds IS NULL"
         " OR iif(lane.also IS NULL, batch.lane IS NOT lane.name || line.name"
         " OR lane.asks <> guest.key, instr(batch.lane, lane.name || char(1)) IS NOT 1"
         " OR instr(batch.lane || char(1), line.name || char(1)) = 0)"
         " OR lane.queue <> line.queue",
         "guests are not those of their key and their lane"},
	{"SELECT count(*) FROM lane JOIN batch ON batch.seq = lane.asked LEFT JOIN (SELECT seq,"
         " count(*) AS n FROM guest GROUP BY seq) AS g ON g.seq = lane.asked WHERE"
         " 1 + ifnull(length(also), 0) / 8 <> length(batch.lane) -"
         " length(replace(batch.lane, char(1), ''))"
         " OR 1 + ifnull(length(also), 0) / 8 <> ifnull(n, 0)",
         "lanes ask for another number of keys than their first job has"},
	{"SELECT count(*) FROM lane WHERE (asks > 0) <> (asked > 0) OR asks > 0 AND NOT EXISTS"
         " (SELECT 1 FROM guest WHERE guest.key = lane.asks AND guest.seq = lane.asked"
         " AND guest.lane = lane.id)",
         "lanes ask for a key that does not know"},
	{"SELECT count(*) FROM (SELECT lane.asked, lane.held, min(line.seq) AS seq, lane.id"
         " FROM lane JOIN line ON line.lane = lane.id WHERE holds IS NULL GROUP BY lane.id) AS l"
         " JOIN batch ON batch.seq = l.seq WHERE l.asked <> iif(instr(batch.lane, char(1)) > 1"
         " AND l.held IS NULL AND NOT EXISTS (SELECT 1 FROM claim WHERE claim.lane = l.id"
         " AND offered = 0) AND NOT EXISTS (SELECT 1 FROM trouble JOIN later"
         " ON later.queue = batch.queue AND later.due = trouble.due AND later.seq = trouble.seq"
         " WHERE trouble.seq = l.seq AND trouble.due IS NOT NULL), l.seq, 0)",
         "lanes ask for a key, or do not, though it should be otherwise"},
	{"SELECT count(*) FROM lane WHERE guest > 0 AND NOT EXISTS (SELECT 1 FROM lane AS other"
         " JOIN guest ON guest.key = lane.id AND guest.seq = other.asked"
         " WHERE other.id = lane.guest AND guest.lane = other.id AND other.head = other.asked)"
         " OR asks > 0 AND head > 0 AND NOT EXISTS (SELECT 1 FROM lane AS key"
         " WHERE key.id = lane.asks AND key.guest = lane.id)",
         "keys have a head in a lane that does not have it"},
	{"SELECT count(*) FROM batch JOIN queue ON queue.id = batch.queue WHERE guests = 0"
         " AND instr(batch.lane, char(1)) > 1 AND seq NOT IN (SELECT seq FROM done)",
         "batches have a lane and a key, and their queue does not know"},
	{"SELECT count(*) FROM wish LEFT JOIN queue ON queue.id = wish.queue LEFT JOIN batch"
         " ON batch.seq = wish.seq WHERE ifnull(key_waiting_max, 0) = 0"
         " OR instr(ifnull(batch.lane, '') || char(1), wish.line || char(1)) = 0"
         " OR batch.queue <> wish.queue",
         "keys are wanted by what does not have them, or in queues that do not count that"},
	{"WITH ready AS MATERIALIZED (SELECT batch.seq, length(batch.lane) - length(replace("
         "batch.lane, char(1), '')) AS keys FROM batch JOIN queue ON queue.id = batch.queue"
         " JOIN lane ON lane.queue = batch.queue"
         " AND lane.name = substr(batch.lane, 1, instr(batch.lane, char(1)) - 1)"
         " JOIN line ON line.lane = lane.id AND line.seq = batch.seq"
         " WHERE key_waiting_max > 0 AND instr(batch.lane, char(1)) > 1"
         " AND batch.seq NOT IN (SELECT seq FROM later)"
         " AND batch.seq NOT IN (SELECT head FROM claim WHERE batches IS NULL)"
         " AND NOT EXISTS (SELECT 1 FROM claim WHERE claim.lane = lane.id"
         " AND batches IS NOT NULL)) SELECT count(*) FROM ready WHERE keys <>"
         " (SELECT count(*) FROM wish WHERE wish.seq = ready.seq)",
         "batches are ready and have keys of which that is not known"},
	{"SELECT count(*) FROM later WHERE seq NOT IN (SELECT seq FROM batch)",
         "delays have no batch"},
	{"SELECT count(*) FROM dead WHERE seq NOT IN (SELECT seq FROM batch)",
         "dead ones have no batch"},
	{"SELECT count(*) FROM done WHERE seq NOT IN (SELECT seq FROM batch)",
         "results have no batch"},
	{"SELECT count(*) FROM trouble WHERE seq NOT IN (SELECT seq FROM batch)",
         "troubles have no batch"},
	{"SELECT count(*) FROM claim WHERE batches IS NULL AND head NOT IN (SELECT seq FROM batch)",
         "claims have no batch"},
	{"SELECT count(*) FROM claim WHERE owner NOT IN (SELECT id FROM owner)",
         "claims have no owner"},
	{"SELECT count(*) FROM claim WHERE lane IS NOT NULL AND lane NOT IN (SELECT id FROM lane)",
         "claims have no lane"},
	{"SELECT count(*) FROM batch WHERE queue NOT IN (SELECT id FROM queue)",
         "batches have no queue"},
	{"SELECT count(*) FROM batch WHERE lane IS NULL AND seq NOT IN (SELECT seq FROM head)"
         " AND seq NOT IN (SELECT seq FROM later) AND seq NOT IN (SELECT seq FROM dead)"
         " AND seq NOT IN (SELECT seq FROM done) AND seq NOT IN (SELECT head FROM claim)",
         "batches without a lane are in no state"},
	{"SELECT count(*) FROM batch WHERE lane IS NOT NULL AND seq NOT IN (SELECT seq FROM line)"
         " AND seq NOT IN (SELECT seq FROM later) AND seq NOT IN (SELECT seq FROM dead)"
         " AND seq NOT IN (SELECT seq FROM done) AND NOT (substr(lane, 1, 1) = char(1)"
         " AND (seq IN (SELECT head FROM claim WHERE batches IS NULL) OR EXISTS (SELECT 1"
         " FROM lane l JOIN claim c ON c.lane = l.id WHERE l.queue = batch.queue"
         " AND l.name = batch.lane AND c.batches IS NOT NULL)))"
         " AND seq NOT IN (SELECT seq FROM lone)",
         "batches of lanes are in no state"},
	{"SELECT count(*) FROM lone WHERE seq NOT IN (SELECT seq FROM head WHERE lane IS NULL)"
         " AND NOT EXISTS (SELECT 1 FROM claim WHERE claim.head = lone.seq AND claim.lone = hash"
         " AND claim.lane IS NULL) AND seq >= ifnull((SELECT first + count FROM bulk"
         " WHERE first <= lone.seq AND length(keys) > 0 ORDER BY first DESC LIMIT 1), 0)",
         "keys are had by one job that is neither ready nor claimed"},
	{"SELECT count(*) FROM lone JOIN batch ON batch.seq = lone.seq JOIN lane"
         " ON lane.queue = batch.queue AND lane.name = batch.lane",
         "keys are had by one job, and have a line"},
	{"SELECT count(*) FROM claim WHERE lone IS NOT NULL AND NOT EXISTS"
         " (SELECT 1 FROM lone WHERE lone.hash = claim.lone AND lone.seq = claim.head)",
         "claims have a key that is another job's"},
	{"SELECT count(*) FROM head JOIN batch ON batch.seq = head.seq WHERE head.lane IS NULL"
         " AND batch.lane IS NOT NULL AND head.seq NOT IN (SELECT seq FROM lone)",
         "heads are not in the line that they should be in"},
	{"SELECT count(*) FROM kept WHERE lane NOT IN (SELECT id FROM lane)"
         " OR seq NOT IN (SELECT seq FROM later WHERE retry > 0)",
         "keys are kept by what does not wait"},
	{"SELECT count(*) FROM lane WHERE holds <> (SELECT count(*) FROM claim"
         " WHERE claim.lane = lane.id AND offered = 0) + (SELECT count(*) FROM kept"
         " WHERE kept.lane = lane.id) + (SELECT count(*) FROM claim WHERE claim.key = lane.id"
         " AND offered = 0) + (SELECT count(*) FROM held JOIN claim ON claim.head = held.head"
         " AND claim.fence = held.fence WHERE held.key = lane.id AND offered = 0)",
         "keys have another number of holders than they count"},
	{"WITH k AS MATERIALIZED (SELECT lane.id, head, guest,"
         " (key_scope < 3 OR"
         " holds + iif(key_class = '', 0, (SELECT ifnull(sum(o.holds), 0) FROM queue AS p"
         " CROSS JOIN lane AS o WHERE p.key_class = queue.key_class AND p.key_class <> ''"
         " AND o.queue = p.id AND o.name = lane.name AND o.id <> lane.id)) < key_limit)"
         " AND until = 0 AS open,"
         " ifnull((SELECT min(seq) FROM line WHERE line.lane = lane.id), 1 << 62) AS own,"
         " ifnull((SELECT min(seq) FROM guest WHERE guest.key = lane.id), 1 << 62) AS other"
         " FROM lane JOIN queue ON queue.id = lane.queue WHERE holds IS NOT NULL)"
         " SELECT count(*) FROM k WHERE (ifnull(head, 0) > 0) <> (open AND own < other)"
         " OR (guest > 0) <> (open AND other < own AND other NOT IN (SELECT guest.seq"
         " FROM guest JOIN k AS o ON o.id = guest.key WHERE NOT o.open"
         " OR min(o.own, o.other) <> guest.seq))",
         "keys can be claimed, or cannot, though it should be otherwise"},
	{"SELECT count(*) FROM queue JOIN queue AS o ON o.key_class = queue.key_class"
         " WHERE queue.key_class <> '' AND (o.key_limit <> queue.key_limit"
         " OR o.hold_on_retry <> queue.hold_on_retry OR o.key_ttl <> queue.key_ttl"
         " OR o.key_starts <> queue.key_starts OR o.key_window <> queue.key_window"
         " OR o.key_waiting_max <> queue.key_waiting_max OR o.on_conflict <> queue.on_conflict)",
         "queues of a class have another policy of keys than others of it"},
	{"SELECT count(*) FROM lane JOIN queue ON queue.id = lane.queue"
         " WHERE lane.until <> ifnull(CASE WHEN queue.key_class = '' THEN (SELECT until FROM rate"
         " WHERE rate.queue = lane.queue AND rate.name = lane.name) ELSE (SELECT max(until)"
         " FROM queue AS o CROSS JOIN rate ON rate.queue = o.id AND rate.name = lane.name"
         " WHERE o.key_class = queue.key_class AND o.key_class <> '') END, 0)",
         "keys wait for another time than their starts say"},
	{"SELECT count(*) FROM rate LEFT JOIN queue ON queue.id = rate.queue"
         " WHERE length(starts) % 8 <> 0 OR length(starts) = 0"
         " OR length(starts) / 8 > ifnull(key_starts, 0)"
         " OR (until > 0) > (length(starts) / 8 = key_starts)",
         "keys have another number of starts than they may"},
	{"SELECT count(*) FROM rate JOIN queue ON queue.id = rate.queue JOIN queue AS o"
         " ON o.key_class = queue.key_class AND o.id > queue.id JOIN rate AS r ON r.queue = o.id"
         " AND r.name = rate.name WHERE queue.key_class <> '' AND o.key_class <> ''",
         "starts of a key are in two queues of its class"},
	{"SELECT (SELECT count(*) FROM lane WHERE head > 0) -"
         " (SELECT count(DISTINCT lane.id) FROM head h JOIN lane ON lane.id = h.lane"
         " AND lane.head = h.seq AND lane.place = h.place AND lane.rank = h.rank"
         " AND lane.queue = h.pool >> 13)",
         "lanes cannot be claimed from, though they should"},
	{"SELECT count(*) FROM head WHERE lane IS NOT NULL AND NOT EXISTS"
         " (SELECT 1 FROM lane WHERE lane.id = head.lane AND lane.head = head.seq)"
         " OR lane IS NULL AND place <> seq * 2",
         "heads are not those of their lanes"},
	{"SELECT count(*) FROM lane JOIN queue ON queue.id = lane.queue WHERE head > 0 AND place <>"
         " CASE WHEN key_fair = 2 AND holds IS NOT NULL AND turn > head THEN turn * 2 + 1"
         " ELSE head * 2 END",
         "lanes are not in their place among others"},
	{"SELECT count(*) FROM lane WHERE head > 0 AND head <> (SELECT min(seq) FROM line"
         " WHERE line.lane = lane.id)",
         "lanes are claimed from elsewhere than at their beginning"},
	{"SELECT count(*) FROM queue WHERE dead <> (SELECT count(*) FROM dead"
         " WHERE dead.queue = queue.id)",
         "queues have another number of dead ones than they count"},
	{"SELECT count(*) FROM queue WHERE delayed <> (SELECT count(*) FROM later"
         " WHERE later.queue = queue.id)",
         "queues have another number of delayed ones than they count"},
	{"SELECT count(*) FROM queue LEFT JOIN (SELECT queue, sum(found) AS found FROM ("
         "SELECT lane.queue, count(*) AS found FROM lane JOIN line ON line.lane = lane.id"
         " WHERE holds IS NOT NULL GROUP BY lane.queue UNION ALL SELECT queue,"
         " count(*) FILTER (WHERE asks > 0) - count(*) FILTER (WHERE head > 0) FROM lane"
         " WHERE holds IS NOT NULL OR asks > 0 GROUP BY queue) GROUP BY queue) AS w"
         " ON w.queue = queue.id WHERE waiting <> ifnull(found, 0)",
         "queues have another number that wait for a key than they count"},
	{"SELECT count(*) FROM queue LEFT JOIN (SELECT queue, sum(found) AS found FROM ("
         "SELECT queue, count(*) AS found FROM batch"
         " WHERE seq NOT IN (SELECT seq FROM done) GROUP BY queue"
         " UNION ALL SELECT queue, sum(length(claims) / 32) FROM chunk GROUP BY queue"
         " UNION ALL SELECT queue, ifnull(last + 1, first + count) - head.seq FROM head"
         " JOIN bulk ON bulk.first ="
         " (SELECT max(first) FROM bulk WHERE first <= head.seq) WHERE tried = 2)"
         " GROUP BY queue) AS b ON b.queue = queue.id"
         " WHERE ready + delayed + running + dead <> ifnull(found, 0)",
         "queues have another number of batches than they count"},
	{"SELECT count(*) FROM batch WHERE seq > (SELECT seq FROM state)",
         "batches have a number that was not given out"},
	{"SELECT count(*) FROM owner LEFT JOIN (SELECT owner, sum(found) AS found FROM ("
         "SELECT owner, count(*) AS found FROM claim GROUP BY owner"
         " UNION ALL SELECT owner, sum(length(claims) / 32) FROM chunk GROUP BY owner)"
         " GROUP BY owner) AS c ON c.owner = owner.id WHERE claims <> ifnull(found, 0)",
         "owners have another number of claims than they count"},
	{"SELECT count(*) FROM shard WHERE queue NOT IN (SELECT id FROM queue)",
         "shards have no queue"},
	{"SELECT count(*) FROM shard WHERE runner IS NOT NULL"
         " AND runner NOT IN (SELECT number FROM runner)",
         "shards have an owner that is not registered"},
	{"SELECT count(*) FROM runner WHERE number > (SELECT runner FROM state)",
         "runners have a number that was not given out"},
	{"SELECT count(*) FROM runner WHERE wish NOT BETWEEN 1 AND 4",
         "runners are asked for what there is not"},
};

struct report {
	void (*call)(void *arg, const char *sentence);
	void *arg;
	uint64_t faults;
};

static void tell(struct report *r, const char *sentence)
{
	r->faults++;
	if (r->call)
		r->call(r->arg, sentence);
}

/* SQLite's own view of the file. */
static enum baton_err check_file(struct sqlite_store *s, struct report *r)
{
	sqlite3_stmt *stmt = NULL;
	int code =
		sqlite3_prepare_v2(s->read.handle, "PRAGMA integrity_check(100)", -1, &stmt, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	while (code == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 0);
		if (text && strcmp(text, "ok") != 0)
			tell(r, text);
		code = sqlite3_step(stmt);
	}
	sqlite3_finalize(stmt);
	return code == SQLITE_DONE ? BATON_OK : db_fail(&s->read, code, "check");
}

static void tell_count(struct report *r, int64_t count, const char *what)
{
	char sentence[160];
	if (count == 0)
		return;
	snprintf(sentence, sizeof sentence, "%lld %s", (long long)count, what);
	tell(r, sentence);
}

/* What no statement can tell: the keys of jobs that stand together. */
static enum baton_err check_keys(struct sqlite_store *s, struct report *r)
{
	struct arena a;
	struct bulk_faults faults = {.lost = 0};
	arena_init(&a, s->base.alloc);
	enum baton_err e = bulk_keys_check(&s->read, &a, &faults);
	arena_done(&a);
	if (e != BATON_OK)
		return e;
	tell_count(r, faults.lost, "jobs that stand together cannot be found by their keys");
	tell_count(r, faults.lined, "jobs that stand together have a key that has a line");
	tell_count(r, faults.doubled, "jobs that stand together have a key that another one has");
	return BATON_OK;
}

static enum baton_err check_rules(struct sqlite_store *s, struct report *r)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0] && e == BATON_OK; i++) {
		int64_t count;
		e = db_number(&s->read, rules[i].sql, &count);
		if (e == BATON_OK)
			tell_count(r, count, rules[i].sentence);
	}
	return e == BATON_OK && r->faults == 0 ? check_keys(s, r) : e;
}

enum baton_err sqlite_check(struct baton_store *store,
                            void (*report)(void *arg, const char *sentence), void *arg,
                            uint64_t *ret_faults)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct report r = {report, arg, 0};
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	e = db_begin(&s->read, SQL_BEGIN_READ);
	if (e == BATON_OK)
		e = check_file(s, &r);
	if (e == BATON_OK && r.faults == 0)
		e = check_rules(s, &r);
	db_rollback(&s->read);
	sqlite_read_end(s);
	if (e == BATON_OK)
		*ret_faults = r.faults;
	return e;
}
