/* A store in a PostgreSQL database: opening it, and looks. */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/mem.h"
#include "store/postgres/address.h"
#include "store/postgres/deal.h"
#include "store/postgres/look.h"
#include "store/postgres/schema.h"

static struct baton_store_time server_wall(const struct baton_clock *clock)
{
	const struct pg_store *s =
		(const struct pg_store *)((const char *)clock - offsetof(struct pg_store, clock));
	return (struct baton_store_time){s->host->now(s->host).ns / 1000000 +
	                                 atomic_load(&s->ahead_ms)};
}

static enum baton_err look(struct pg_store *s, const struct wants *w,
                           enum baton_err (*run)(struct baton_store *desk, void *args), void *args)
{
	struct conn *c = &s->read;
	struct desk d = {.memory = true};
	struct loading l;
	enum baton_err e = conn_need(c);
	if (e != BATON_OK)
		return e;
	conn_begin_look(c, atomic_load(&s->beat_ms));
	load_send(s, c, w, true, &l);
	e = conn_round(c);
	if (e == BATON_OK) {
		e = load_take(s, c, &l, &d);
		if (e == BATON_OK)
			e = load_class(c, &d);
		if (e == BATON_OK)
			e = run(d.store, args);
		desk_close(&d);
	}
	conn_rollback(c);
	return e;
}

enum baton_err pg_look(struct pg_store *s, void (*want)(struct wants *w, const void *args),
                       enum baton_err (*run)(struct baton_store *desk, void *args), void *args)
{
	struct wants w;
	pg_wants_init(&w, s->base.alloc);
	want(&w, args);
	enum baton_err e = w.memory ? BATON_OK : fail_memory(1, "a look");
	pthread_mutex_lock(&s->read_mu);
	if (e == BATON_OK)
		e = look(s, &w, run, args);
	pthread_mutex_unlock(&s->read_mu);
	pg_wants_done(&w);
	return e;
}

static void connect_init(struct pg_store *s, struct conn *c)
{
	conn_init(c, s->base.alloc, s->info, s->base.where);
	c->pooled = s->pooled;
	c->patience_ms = s->base.patience.ns / 1000000;
}

static void lineup_init(struct lineup *l, struct pg_store *s)
{
	group_init(&l->group, deal_commit, l);
	l->store = s;
	connect_init(s, &l->conn);
	l->conn.arrived = pg_schema_arrive;
}

/* The connections of a forked child are its parent's, who goes on with them. */
static void lineup_done(struct lineup *l)
{
	if (!l->store)
		return;
	if (l->store->base.pid == getpid())
		conn_close(&l->conn);
	group_done(&l->group);
}

void postgres_close(struct baton_store *store)
{
	struct pg_store *s = (struct pg_store *)store;
	listener_done(s);
	lineup_done(&s->adds);
	lineup_done(&s->takes);
	lineup_done(&s->keeps);
	if (s->base.pid == getpid())
		conn_close(&s->read);
	pthread_mutex_destroy(&s->read_mu);
	hints_done(&s->hints);
	store_done(store);
	explicit_bzero(s->info, sizeof s->info);
	mem_free(s->base.alloc, s, 1, sizeof *s);
}

/* What of a connection string people are told: what cannot be a secret. */
static void show_option(char *text, size_t size, const PQconninfoOption *o)
{
	static const char *const shown[] = {"host",   "hostaddr", "port",
	                                    "dbname", "user",     "service"};
	size_t len = strlen(text);
	for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
		if (o->val && o->val[0] && strcmp(o->keyword, shown[i]) == 0)
			snprintf(text + len, size - len, "%s%s=%s", text[len - 1] == ':' ? "" : " ",
			         o->keyword, o->val);
	}
}

static enum baton_err show_where(struct pg_store *s)
{
	char *why = NULL;
	PQconninfoOption *options = PQconninfoParse(s->info, &why);
	PQfreemem(why); /* may have a part of the string, and so a secret */
	if (!options)
		return fail(
			BATON_INVALID,
			"the store's connection string cannot be read: it is like "
			"postgresql://USER@HOST/DATABASE or postgres:host=HOST dbname=DATABASE");
	snprintf(s->base.where, sizeof s->base.where, "postgres:");
	for (const PQconninfoOption *o = options; o->keyword; o++)
		show_option(s->base.where, sizeof s->base.where, o);
	PQconninfoFree(options);
	return BATON_OK;
}

/* Stores that were made from one copy have the same name, but not the same place. */
static enum baton_err read_key(struct pg_store *s)
{
	uint8_t digest[DIGEST_SIZE];
	char text[128];
	enum baton_err e = conn_ask(&s->read,
	                            "SELECT encode(name, 'hex') || split_part(place, '/', 1) FROM "
	                            "baton.state",
	                            text, sizeof text);
	if (e != BATON_OK)
		return e;
	digest_bytes(text, strlen(text), digest);
	memcpy(&s->listen_key, digest, sizeof s->listen_key);
	return BATON_OK;
}

/* Makes the tables if they are not there, and reads what never changes, on the connection that
 * looks are for later. */
static enum baton_err prepare(struct pg_store *s, bool existing)
{
	struct conn *c = &s->read;
	char text[64];
	connect_init(s, c);
	enum baton_err e = conn_connect(c, true);
	if (e == BATON_OK)
		e = conn_ask(c, "SHOW server_encoding", text, sizeof text);
	if (e == BATON_OK && strcmp(text, "UTF8") != 0)
		e = fail(BATON_INVALID, "the database of store %s is in %s: it has to be in UTF8",
		         s->base.where, text);
	int64_t now_ms = 0;
	if (e == BATON_OK)
		e = conn_number(c, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
		                &now_ms);
	if (s->own_clock)
		now_ms = s->host->wall(s->host).ms;
	atomic_store(&s->ahead_ms, now_ms - s->host->now(s->host).ns / 1000000);
	if (e == BATON_OK)
		e = pg_schema_open(c, existing, now_ms);
	if (e == BATON_OK)
		e = conn_ask(c, "SELECT encode(name, 'hex') FROM baton.state", text, sizeof text);
	if (e == BATON_OK)
		e = baton_id_parse(baton_str_z(text), &s->base.name);
	if (e == BATON_OK)
		e = read_key(s);
	if (e == BATON_OK)
		e = conn_be_quick(c);
	c->arrived = pg_schema_arrive;
	return e;
}

static void pg_store_freep(struct pg_store **s)
{
	if (*s)
		postgres_close(&(*s)->base);
}

enum baton_err postgres_open(const struct baton_store *store, struct baton_str info, bool existing,
                             struct baton_store **ret_store)
{
	AUTO(pg_store_freep) struct pg_store *s = mem_new(store->alloc, 1, sizeof *s);
	if (!s)
		return fail_memory(sizeof *s, "a store");
	memcpy(&s->base, store, sizeof s->base);
	s->base.ops = &postgres_ops;
	pthread_mutex_init(&s->base.beats_mu, NULL);
	pthread_mutex_init(&s->read_mu, NULL);
	listener_init(&s->listener);
	hints_init(&s->hints);
	snprintf(s->info, sizeof s->info, "%.*s", (int)info.len, info.ptr);
	s->host = store->clock;
	s->own_clock = store->clock != baton_clock_awake();
	s->clock = *store->clock;
	if (!s->own_clock) {
		s->clock.wall = server_wall;
		s->base.clock = &s->clock;
	}
	enum baton_err e = address_split(s->info, &s->pooled);
	if (e == BATON_OK)
		e = show_where(s);
	if (e == BATON_OK)
		e = prepare(s, existing);
	if (e != BATON_OK)
		return e;
	lineup_init(&s->adds, s);
	lineup_init(&s->takes, s);
	lineup_init(&s->keeps, s);
	struct pg_store *made = TAKE(s);
	*ret_store = &made->base;
	return BATON_OK;
}
