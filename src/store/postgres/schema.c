/* The tables of a store, and how those of an earlier version become these. */
#include "store/postgres/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/store.h>

#include "base/fail.h"
#include "queue/fence.h"
#include "store/postgres/steps.h"

#define TRIES 4
#define DEADLOCK "40P01"
#define NO_RIGHT "42501"

/* A second has as many fences as a granter counts without a higher one. The first granter of a
 * store has that of the second after it was made. */
#define SECONDS_AHEAD 2

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
	if (to == 0)
		return pg_functions;
	if (to == BATON_STORE_STAMP)
		return pg_stamp;
	return to >= 1 && to <= pg_step_count ? pg_steps[to - 1] : NULL;
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
	if (version < 1 || version > pg_step_count)
		return fail(BATON_INVALID,
		            "store %s has version %lld of its tables, and this program knows them "
		            "up to %d: a newer baton has to open it",
		            c->where, (long long)version, pg_step_count);
	*ret_version = (int)version;
	return BATON_OK;
}

static enum baton_err first_row(struct conn *c, int64_t now_ms)
{
	char text[600];
	snprintf(text, sizeof text,
	         "INSERT INTO baton.state SELECT 1, %d, decode(replace("
	         "gen_random_uuid()::text, '-', ''), 'hex'), %lld, 0, " PLACE,
	         pg_step_count, (long long)now_ms);
	return conn_exec(c, text);
}

static enum baton_err take_steps(struct conn *c, int version)
{
	enum baton_err e = BATON_OK;
	for (int i = version; i < pg_step_count && e == BATON_OK; i++)
		e = conn_exec(c, pg_steps[i]);
	return e == BATON_OK ? conn_exec(c, pg_functions) : e;
}

/* Every transaction of a store reads the version before it writes, and so keeps its row's table
 * until it ends: whoever has this lock knows that none is under way that still counts on the
 * version before. */
static enum baton_err raise_version(struct conn *c, int version)
{
	char text[80];
	if (version == pg_step_count)
		return BATON_OK;
	enum baton_err e = conn_exec(c, "LOCK TABLE baton.state IN ACCESS EXCLUSIVE MODE");
	if (e == BATON_OK)
		e = take_steps(c, version);
	snprintf(text, sizeof text, "UPDATE baton.state SET version = %d", pg_step_count);
	if (e == BATON_OK)
		e = conn_exec(c, text);
	if (e != BATON_OK && strcmp(c->state, NO_RIGHT) == 0)
		fail_detail("store %s has version %d of its tables, and this program needs %d; its "
		            "role may not change them: baton migrate has to be run by their owner",
		            c->where, version, pg_step_count);
	return e;
}

static enum baton_err make(struct conn *c, int64_t now_ms)
{
	enum baton_err e = take_steps(c, 0);
	return e == BATON_OK ? first_row(c, now_ms) : e;
}

/* After a copy was brought back, or a standby has taken over, fences that were handed out may not
 * be known here: the next ones are above them, those of claims too, though who grants them goes on.
 * In a copy all that was held has ended. */
static enum baton_err begin_anew(struct conn *c, int64_t now_ms)
{
	char text[3200];
	snprintf(text, sizeof text,
	         "SELECT baton.melt(ARRAY(SELECT DISTINCT first FROM baton.chunk WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM "
	         "baton.state)));"
	         "UPDATE baton.lease SET held = false, runner = NULL WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM baton.state);"
	         "UPDATE baton.claim SET token = decode(replace(gen_random_uuid()::text, '-', "
	         "''), 'hex'), "
	         "expires_at = least(expires_at, %lld) WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM baton.state);"
	         "DELETE FROM baton.runner WHERE (SELECT "
	         "split_part(place, '/', 1) <> split_part(" PLACE ", '/', 1) FROM baton.state);",
	         (long long)now_ms);
	enum baton_err e = conn_exec(c, text);
	long long floor = (now_ms / 1000 + SECONDS_AHEAD) << FENCE_COUNTER_BITS;
	snprintf(text, sizeof text,
	         "UPDATE baton.state SET place = " PLACE ", made = greatest(made, %lld);"
	         "UPDATE baton.queue SET floor = greatest(floor, %lld);"
	         "UPDATE baton.tally SET floor = greatest(floor, %lld), tended = 0",
	         (long long)now_ms, floor, floor);
	return e == BATON_OK ? conn_exec(c, text) : e;
}

/* A standby that takes over keeps its connections, and they would not be looked at again: so those
 * to a standby are for once. */
static enum baton_err is_moved(struct conn *c, bool *ret)
{
	char text[1 + sizeof c->place];
	enum baton_err e = conn_ask(c,
	                            "SELECT CASE WHEN pg_is_in_recovery() THEN 's' "
	                            "WHEN s.place <> p.place THEN 'm' ELSE 'h' END || p.place "
	                            "FROM baton.state s, (SELECT " PLACE " AS place) p",
	                            text, sizeof text);
	if (e != BATON_OK)
		return e;
	c->once = text[0] == 's';
	*ret = text[0] == 'm';
	snprintf(c->place, sizeof c->place, "%s", text[0] ? text + 1 : "");
	return BATON_OK;
}

/* All of it or nothing, however many steps there are, and however long they take. */
static enum baton_err change_once(struct conn *c, int64_t now_ms)
{
	int version;
	bool moved = false;
	enum baton_err e = conn_exec(c, "BEGIN; SET LOCAL statement_timeout = 0;"
	                                "SELECT pg_advisory_xact_lock(1650553967, -1)");
	if (e == BATON_OK)
		e = look(c, &version);
	if (e == BATON_OK)
		e = version == 0 ? make(c, now_ms) : raise_version(c, version);
	if (e == BATON_OK)
		e = is_moved(c, &moved);
	if (e == BATON_OK && moved)
		e = begin_anew(c, now_ms);
	if (e == BATON_OK)
		return conn_exec(c, "COMMIT");
	PQclear(PQexec(c->pg, "ROLLBACK"));
	return e;
}

/* Those who work with the tables meanwhile lock them in other orders. */
static enum baton_err change(struct conn *c, int64_t now_ms)
{
	enum baton_err e = BATON_BUSY;
	for (int i = 0; i < TRIES; i++) {
		c->state[0] = '\0';
		e = change_once(c, now_ms);
		if (e == BATON_OK || strcmp(c->state, DEADLOCK) != 0)
			break;
	}
	return e;
}

enum baton_err pg_schema_open(struct conn *c, bool existing, int64_t now_ms)
{
	int version;
	bool moved = false;
	enum baton_err e = look(c, &version);
	if (e == BATON_OK && version == 0 && existing)
		return fail(BATON_NOT_FOUND, "there is no store in the database %s", c->where);
	if (e == BATON_OK && version == pg_step_count)
		e = is_moved(c, &moved);
	if (e != BATON_OK || (version == pg_step_count && !moved))
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
