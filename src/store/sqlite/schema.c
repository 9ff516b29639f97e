/* The tables of a store, and how one of an earlier version becomes one of this. */
#include "store/sqlite/schema.h"

#include <sys/stat.h>

#include "base/fail.h"
#include "queue/fence.h"

#define PAGE_MIN 512           /* the smallest that SQLite has */
#define FENCES_SINCE (1 << 20) /* that an original may have handed out more than the clock tells */
#define APPLICATION 0x4261746f /* "Bato" */

/* Each step leads from the version before it to the next. Those that are there never change. */
static const char *const steps[] = {
	/* What there is one of. */
	"CREATE TABLE state("
	" one INTEGER PRIMARY KEY CHECK(one = 1),"
	" seq INTEGER NOT NULL,"           /* the number of the last batch          */
	" lane INTEGER NOT NULL,"          /* of the last lane                      */
	" granter_floor INTEGER NOT NULL," /* all fences are above these            */
	" plain_floor INTEGER NOT NULL,"
	" copied INTEGER NOT NULL," /* 1: a copy that nobody has opened yet         */
	" swept INTEGER NOT NULL,"  /* how far `finished` has been looked through   */
	" name BLOB NOT NULL);"     /* of the store: 16 random bytes                */
	"CREATE TABLE lease("
	" subject TEXT PRIMARY KEY, held INTEGER NOT NULL, owner TEXT NOT NULL,"
	" token BLOB NOT NULL, nonce BLOB NOT NULL, fence INTEGER NOT NULL,"
	" counter INTEGER NOT NULL," /* claims of work under this fence               */
	" claimed_at INTEGER NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE queue("
	" id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, mode INTEGER NOT NULL,"
	" shards INTEGER NOT NULL, paused INTEGER NOT NULL, payload_max INTEGER NOT NULL,"
	" waiting_max INTEGER NOT NULL, attempts INTEGER NOT NULL, backoff INTEGER NOT NULL,"
	" base INTEGER NOT NULL, cap INTEGER NOT NULL, lane_attempts INTEGER NOT NULL,"
	" lane_backoff INTEGER NOT NULL, lane_base INTEGER NOT NULL, lane_cap INTEGER NOT NULL,"
	" on_retry INTEGER NOT NULL, on_dead INTEGER NOT NULL, dedupe INTEGER NOT NULL,"
	" keep INTEGER NOT NULL,"
	" granter INTEGER NOT NULL, counter INTEGER NOT NULL," /* of its claims that are pulled */
	" ready INTEGER NOT NULL, delayed INTEGER NOT NULL, running INTEGER NOT NULL,"
	" dead INTEGER NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL);"
	/* What was put, and never changes until it is deleted. */
	"CREATE TABLE batch("
	" seq INTEGER PRIMARY KEY, queue INTEGER NOT NULL, flags INTEGER NOT NULL,"
	" put_at INTEGER NOT NULL, due INTEGER, born INTEGER, lane TEXT, grp TEXT,"
	" retry BLOB, payload BLOB NOT NULL);"
	"CREATE UNIQUE INDEX batch_born ON batch(born) WHERE born IS NOT NULL;"
	/* Where claims begin: a row for each batch without a lane that is ready, and for each lane
	 * that can be claimed from. */
	"CREATE TABLE head("
	" pool INTEGER NOT NULL, rank INTEGER NOT NULL, seq INTEGER NOT NULL,"
	" lane INTEGER, tried INTEGER NOT NULL, PRIMARY KEY(pool, rank, seq)) WITHOUT ROWID;"
	/* A lane that is not empty, and its batches in order. */
	"CREATE TABLE lane("
	" id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, name TEXT NOT NULL,"
	" held INTEGER, head INTEGER, rank INTEGER);"
	"CREATE UNIQUE INDEX lane_name ON lane(queue, name);"
	"CREATE TABLE line("
	" lane INTEGER NOT NULL, seq INTEGER NOT NULL, tried INTEGER NOT NULL,"
	" PRIMARY KEY(lane, seq)) WITHOUT ROWID;"
	/* What waits for its time, or for its next attempt. */
	"CREATE TABLE later("
	" queue INTEGER NOT NULL, due INTEGER NOT NULL, seq INTEGER NOT NULL,"
	" retry INTEGER NOT NULL, PRIMARY KEY(queue, due, seq)) WITHOUT ROWID;"
	/* What happened to batches that did not go the straight way. */
	"CREATE TABLE trouble("
	" seq INTEGER PRIMARY KEY, attempts INTEGER NOT NULL, fence INTEGER NOT NULL,"
	" error TEXT, due INTEGER, cancel INTEGER NOT NULL);"
	"CREATE TABLE dead("
	" queue INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,"
	" holds INTEGER," /* the lane that stands still because of it */
	" PRIMARY KEY(queue, seq)) WITHOUT ROWID;"
	"CREATE INDEX dead_holds ON dead(holds, seq) WHERE holds IS NOT NULL;"
	"CREATE TABLE done("
	" seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, until INTEGER NOT NULL,"
	" result BLOB NOT NULL);"
	"CREATE INDEX done_until ON done(until);"
	"CREATE TABLE owner("
	" id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, claims INTEGER NOT NULL,"
	" seen_at INTEGER NOT NULL);"
	"CREATE TABLE claim("
	" head INTEGER NOT NULL, fence INTEGER NOT NULL, token BLOB NOT NULL,"
	" owner INTEGER NOT NULL, queue INTEGER NOT NULL, claimed_at INTEGER NOT NULL,"
	" expires_at INTEGER NOT NULL, offered INTEGER NOT NULL, tried INTEGER NOT NULL,"
	" granter INTEGER NOT NULL, lane INTEGER, batches BLOB,"
	" PRIMARY KEY(head, fence)) WITHOUT ROWID;"
	"CREATE INDEX claim_expires ON claim(queue, expires_at) WHERE offered = 0;"
	"CREATE INDEX claim_lane ON claim(lane) WHERE lane IS NOT NULL;"
	/* What is remembered for those who ask again. */
	"CREATE TABLE source("
	" hash BLOB PRIMARY KEY, id INTEGER NOT NULL, content BLOB NOT NULL,"
	" until INTEGER NOT NULL,"
	" look INTEGER NOT NULL) WITHOUT ROWID;" /* when it may be forgotten */
	"CREATE INDEX source_look ON source(look);"
	"CREATE TABLE finished("
	" head INTEGER PRIMARY KEY, fence INTEGER NOT NULL, token BLOB NOT NULL,"
	" state INTEGER NOT NULL, until INTEGER NOT NULL);"
	"CREATE TABLE schedule("
	" name TEXT PRIMARY KEY, cron TEXT NOT NULL, zone TEXT NOT NULL, missed INTEGER NOT NULL,"
	" queue TEXT NOT NULL, lane TEXT NOT NULL, priority INTEGER NOT NULL,"
	" payload BLOB NOT NULL, last INTEGER NOT NULL, next INTEGER NOT NULL) WITHOUT ROWID;",

	/* Runners, and the shards of queues that they own. */
	"ALTER TABLE state ADD COLUMN runner INTEGER NOT NULL DEFAULT 0;" /* the last number */
	"ALTER TABLE queue ADD COLUMN mixed INTEGER NOT NULL DEFAULT 0;"  /* some heads are still
	                                                                    where another mode had
	                                                                    them */
	"ALTER TABLE lane ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;"
	"UPDATE lane SET shard = ifnull((SELECT flags >> 8 FROM batch WHERE seq ="
	" ifnull(held, (SELECT seq FROM line WHERE line.lane = lane.id LIMIT 1))), 0);"
	"CREATE TABLE runner("
	" number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, slot INTEGER NOT NULL UNIQUE,"
	" endpoint TEXT NOT NULL, labels TEXT NOT NULL, owner TEXT NOT NULL,"
	" weight INTEGER NOT NULL, ttl INTEGER NOT NULL, since INTEGER NOT NULL);"
	"CREATE TABLE shard("
	" queue INTEGER NOT NULL, number INTEGER NOT NULL, runner INTEGER, fence INTEGER NOT NULL,"
	" counter INTEGER NOT NULL, PRIMARY KEY(queue, number)) WITHOUT ROWID;"
	"CREATE INDEX shard_runner ON shard(runner) WHERE runner IS NOT NULL;"
	"CREATE INDEX claim_bound ON claim(owner) WHERE expires_at = 9223372036854775807;",

	/* Fences that grow along a lane whatever the mode of its queue was: each claim's is above
	 * `floor`, which is the highest that there was before the mode changed. */
	"ALTER TABLE queue ADD COLUMN top INTEGER NOT NULL DEFAULT 0;" /* of all claims */
	"ALTER TABLE queue ADD COLUMN floor INTEGER NOT NULL DEFAULT 0;"
	"UPDATE queue SET top = max((granter << 20) + counter,"
	" ifnull((SELECT max((fence << 20) + counter) FROM shard WHERE shard.queue = queue.id), 0),"
	" ifnull((SELECT max((fence << 20) + counter) FROM lease"
	" WHERE subject > 'lane/' || name || '/' AND subject < 'lane/' || name || '0'), 0));"
	"UPDATE queue SET floor = top;",

	/* What else is known of a runner, and how often shards have changed hands. */
	"ALTER TABLE state ADD COLUMN shards INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE runner ADD COLUMN queues TEXT NOT NULL DEFAULT '';" /* '/' between them */
	"ALTER TABLE runner ADD COLUMN host TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE runner ADD COLUMN guardian INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE runner ADD COLUMN life TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE runner ADD COLUMN wish INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE runner ADD COLUMN state TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE runner ADD COLUMN proofs INTEGER NOT NULL DEFAULT 0;", /* of writing */

	/* What a runner has done, as it tells, and when it did so last; 0: never. */
	"ALTER TABLE runner ADD COLUMN report TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE runner ADD COLUMN reported INTEGER NOT NULL DEFAULT 0;",

	/* Keys. The line of a key is a lane whose name begins with a byte 1; in it is what can be
	 * claimed, and nothing that is claimed. */
	"ALTER TABLE queue ADD COLUMN key_limit INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE queue ADD COLUMN hold_on_retry INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE lane ADD COLUMN holds INTEGER;" /* of a key; NULL: a lane */
	"CREATE TABLE kept("                         /* keep their key until the next attempt */
	" lane INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(lane, seq)) WITHOUT ROWID;"
	"CREATE INDEX claim_offered ON claim(lane) WHERE offered = 1 AND lane IS NOT NULL;",

	/* What becomes of work whose key others have. */
	"ALTER TABLE queue ADD COLUMN on_conflict INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE queue ADD COLUMN key_waiting_max INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE done ADD COLUMN rival INTEGER;"    /* the id of whom it was skipped for */
	"ALTER TABLE trouble ADD COLUMN rival INTEGER;" /* and is to be, when it has stopped */
	/* Keys that one batch alone has, by their hashes: there is no line of such a key. */
	"CREATE TABLE lone(hash INTEGER PRIMARY KEY, seq INTEGER NOT NULL);"
	"ALTER TABLE claim ADD COLUMN lone INTEGER;", /* the hash of such a key */

	/* Jobs that stand together, and what of them is claimed: a head of `tried` 2 is theirs. */
	"CREATE TABLE bulk("
	" first INTEGER PRIMARY KEY, queue INTEGER NOT NULL, flags INTEGER NOT NULL,"
	" put_at INTEGER NOT NULL, count INTEGER NOT NULL, jobs BLOB NOT NULL);"
	"CREATE TABLE chunk("
	" first INTEGER PRIMARY KEY, bulk INTEGER NOT NULL, queue INTEGER NOT NULL,"
	" owner INTEGER NOT NULL, claimed_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,"
	" granter INTEGER NOT NULL, salt BLOB NOT NULL, claims BLOB NOT NULL);"
	"CREATE INDEX chunk_expires ON chunk(queue, expires_at);"
	"CREATE INDEX chunk_bound ON chunk(owner) WHERE expires_at = 9223372036854775807;"
	"CREATE TABLE reply("
	" first INTEGER PRIMARY KEY, until INTEGER NOT NULL, claims BLOB NOT NULL);"
	"CREATE INDEX reply_until ON reply(until);"
	/* Keys that take turns: a number that a line has got since its head was put, and where that
	 * stands among others: see line_place(). */
	"ALTER TABLE queue ADD COLUMN key_fair INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE lane ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE lane ADD COLUMN place INTEGER;"
	"UPDATE lane SET place = head * 2;"
	"CREATE TABLE place("
	" pool INTEGER NOT NULL, rank INTEGER NOT NULL, place INTEGER NOT NULL,"
	" seq INTEGER NOT NULL, lane INTEGER, tried INTEGER NOT NULL,"
	" PRIMARY KEY(pool, rank, place, seq)) WITHOUT ROWID;"
	"INSERT INTO place SELECT pool, rank, seq * 2, seq, lane, tried FROM head;"
	"DROP TABLE head;"
	"ALTER TABLE place RENAME TO head;",

	/* How often keys may start: the times of their last starts, eight bytes each, the lowest
	 * first; `until` is when such a key may start again, 0 being now, and `over` when all of
	 * them have left the window. */
	"ALTER TABLE queue ADD COLUMN key_starts INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE queue ADD COLUMN key_window INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE queue ADD COLUMN key_ttl INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE lane ADD COLUMN until INTEGER NOT NULL DEFAULT 0;" /* as in `rate` */
	"CREATE TABLE rate("
	" id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, name TEXT NOT NULL,"
	" until INTEGER NOT NULL, over INTEGER NOT NULL, starts BLOB NOT NULL);"
	"CREATE UNIQUE INDEX rate_name ON rate(queue, name);"
	"CREATE INDEX rate_until ON rate(queue, until) WHERE until > 0;"
	"CREATE INDEX rate_over ON rate(over) WHERE until = 0;",

	/* Jobs with keys that stand together: their keys, and the rows of which those are not in
	 * `lone` (some may be gone), eight bytes each; and up to which number a head stands for
	 * such jobs, NULL being to the end of their row. */
	"ALTER TABLE bulk ADD COLUMN keys BLOB NOT NULL DEFAULT x'';"
	"ALTER TABLE state ADD COLUMN young BLOB NOT NULL DEFAULT x'';"
	"ALTER TABLE head ADD COLUMN last INTEGER;",

	/* Work with a lane and a key, whose lane in `batch` is that of its line, a byte 1 and the
	 * key. A lane whose first batch has a key `asks` there with the number `asked`, as a row of
	 * `guest` says too; the `guest` of a key is the lane that has its head. */
	"ALTER TABLE queue ADD COLUMN guests INTEGER NOT NULL DEFAULT 0;" /* it has had some */
	"ALTER TABLE lane ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE lane ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE lane ADD COLUMN guest INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE claim ADD COLUMN key INTEGER;" /* the line of the key that it holds beside */
	"CREATE INDEX claim_key ON claim(key) WHERE key IS NOT NULL;"
	"CREATE TABLE guest("
	" key INTEGER NOT NULL, seq INTEGER NOT NULL, lane INTEGER NOT NULL,"
	" tried INTEGER NOT NULL, PRIMARY KEY(key, seq)) WITHOUT ROWID;",

	/* Work with several keys: its lane in `batch` is followed by the lines of all of them. What
	 * has no lane is in one of its own, a byte 2 and its id. The lines beside `asks`, and
	 * beside the `key` of a claim, are in `also`, eight bytes each; the latter in `held` too.
	 */
	"ALTER TABLE lane ADD COLUMN also BLOB;"
	"ALTER TABLE claim ADD COLUMN also BLOB;"
	"CREATE TABLE held("
	" key INTEGER NOT NULL, head INTEGER NOT NULL, fence INTEGER NOT NULL,"
	" PRIMARY KEY(key, head, fence)) WITHOUT ROWID;",

	/* How many wait for a key: in the line of one, or in a lane that asks for one, and without
	 * its head. */
	"ALTER TABLE queue ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;"
	"UPDATE queue SET waiting = (SELECT count(*) FROM lane JOIN line ON line.lane = lane.id"
	" WHERE lane.queue = queue.id AND holds IS NOT NULL) + (SELECT count(*) FROM lane"
	" WHERE lane.queue = queue.id AND asks > 0) - (SELECT count(*) FROM lane"
	" WHERE lane.queue = queue.id AND head > 0 AND (holds IS NOT NULL OR asks > 0));"
	/* In queues with a key_waiting_max: what is ready and has keys beside its lane, or several,
	 * by the line of each of its keys. */
	"CREATE TABLE wish("
	" queue INTEGER NOT NULL, line TEXT NOT NULL, seq INTEGER NOT NULL,"
	" PRIMARY KEY(queue, line, seq)) WITHOUT ROWID;",

	/* Where keys are counted: unless that is the cluster (3), the line of a key in a shard is a
	 * lane whose name is that of the key's line, a byte 3 and the number of the shard. */
	"ALTER TABLE queue ADD COLUMN key_scope INTEGER NOT NULL DEFAULT 3;",

	/* Queues that have their keys in common. */
	"ALTER TABLE queue ADD COLUMN key_class TEXT NOT NULL DEFAULT '';"
	"CREATE INDEX queue_class ON queue(key_class) WHERE key_class <> '';",
};
#define VERSION ((int64_t)(sizeof steps / sizeof steps[0]))

static enum baton_err is_newer(const struct db *db, int64_t version)
{
	return fail(BATON_INVALID,
	            "store %s has version %lld of its tables, and this program knows them up to "
	            "%lld: a newer baton has to open it",
	            db->path, (long long)version, (long long)VERSION);
}

enum baton_err schema_check(struct db *db)
{
	struct query q = query_begin(db, SQL_TABLES);
	int64_t version = query_row(&q) ? column_int(&q, 0) : 0;
	enum baton_err e = query_end(&q);
	return e == BATON_OK && version > VERSION ? is_newer(db, version) : e;
}

/* SQLite takes a file of a few bytes for an empty one, and would write over it. */
static bool is_scrap(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && st.st_size > 0 && st.st_size < PAGE_MIN;
}

/* A file that is empty, or one of ours. */
static enum baton_err check_kind(struct db *db, int64_t *ret_version)
{
	int64_t application, tables;
	enum baton_err e = db_number(db, "PRAGMA application_id", &application);
	if (e == BATON_OK)
		e = db_number(db, "PRAGMA user_version", ret_version);
	if (e == BATON_OK)
		e = db_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (e != BATON_OK)
		return e;
	if (application != APPLICATION && (tables > 0 || application != 0 || *ret_version != 0))
		return fail(BATON_INVALID,
		            "%s is no store: it is an SQLite file of another program", db->path);
	if (tables == 0 && is_scrap(db->path))
		return fail(BATON_INVALID, "%s is no store: it is not an SQLite file", db->path);
	return *ret_version > VERSION ? is_newer(db, *ret_version) : BATON_OK;
}

static enum baton_err first_row(struct db *db, struct baton_store_time now)
{
	struct baton_id name;
	enum baton_err e = baton_id_random(&name);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(db, SQL_STATE_NEW);
	query_int(&q, (int64_t)fence_floor(FENCE_GRANTER, now));
	query_int(&q, (int64_t)fence_floor(FENCE_PLAIN, now));
	query_blob(&q, name.bytes, sizeof name.bytes);
	return query_run(&q);
}

static enum baton_err take_steps(struct db *db, int64_t version, struct baton_store_time now)
{
	char stamp[96];
	enum baton_err e = BATON_OK;
	for (int64_t i = version; i < VERSION && e == BATON_OK; i++)
		e = db_exec(db, steps[i]);
	if (e == BATON_OK && version == 0)
		e = first_row(db, now);
	if (e != BATON_OK || version == VERSION)
		return e;
	sqlite3_snprintf(sizeof stamp, stamp, "PRAGMA application_id=%d; PRAGMA user_version=%lld",
	                 APPLICATION, (long long)VERSION);
	return db_exec(db, stamp);
}

/* The first to open a copy ends all leases, claims and registrations in it, and raises all fences
 * above those that the original may have handed out since. */
static enum baton_err begin_anew(struct db *db, struct baton_store_time now)
{
	int64_t copied;
	enum baton_err e = db_number(db, "SELECT copied FROM state", &copied);
	if (e != BATON_OK || copied == 0)
		return e;
	struct query raise = query_begin(db, SQL_STATE_RAISE);
	query_int(&raise, (int64_t)fence_floor(FENCE_GRANTER, now));
	query_int(&raise, (int64_t)fence_floor(FENCE_PLAIN, now));
	query_int(&raise, FENCES_SINCE);
	e = query_run(&raise);
	struct query leases = query_begin(db, SQL_LEASE_END_ALL);
	if (e == BATON_OK)
		e = query_run(&leases);
	struct query claims = query_begin(db, SQL_CLAIM_END_ALL);
	query_int(&claims, now.ms);
	if (e == BATON_OK)
		e = query_run(&claims);
	struct query chunks = query_begin(db, SQL_CHUNK_END_ALL);
	query_int(&chunks, now.ms);
	if (e == BATON_OK)
		e = query_run(&chunks);
	return e == BATON_OK ? db_exec(db, "DELETE FROM runner; UPDATE shard SET runner = NULL")
	                     : e;
}

static enum baton_err settle(struct db *db, struct baton_store_time now)
{
	int64_t version;
	enum baton_err e = check_kind(db, &version);
	if (e == BATON_OK)
		e = take_steps(db, version, now);
	return e == BATON_OK ? begin_anew(db, now) : e;
}

/* All of it is of one moment, since another process may be making the store just now. */
static enum baton_err look_at_kind(struct db *db, int64_t *ret_version)
{
	enum baton_err e = db_begin(db, SQL_BEGIN_READ);
	if (e == BATON_OK)
		e = check_kind(db, ret_version);
	db_rollback(db);
	return e;
}

enum baton_err schema_open(struct db *db, struct baton_store_time now)
{
	int64_t version, copied = 0;
	enum baton_err e = look_at_kind(db, &version);
	if (e == BATON_OK)
		e = db_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
		                "PRAGMA secure_delete=FAST");
	if (e == BATON_OK && version == VERSION)
		e = db_number(db, "SELECT copied FROM state", &copied);
	if (e != BATON_OK || (version == VERSION && copied == 0))
		return e;
	e = db_begin(db, SQL_BEGIN);
	if (e != BATON_OK)
		return e;
	e = settle(db, now);
	if (e == BATON_OK)
		e = db_exec(db, "COMMIT");
	db_rollback(db);
	return e;
}
