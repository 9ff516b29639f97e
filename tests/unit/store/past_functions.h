/* The functions and the view that earlier versions of the tables had, without what they did: for
 * each the first version that had it. */
#ifndef PAST_FUNCTIONS_H
#define PAST_FUNCTIONS_H

#define PUT_ARGS "lane text DEFAULT NULL, options jsonb DEFAULT '{}'"

struct past_function {
	int since;
	const char *head;
};

static const struct past_function past_functions[] = {
	{1, "draw(first bigint, amount bigint) RETURNS void"},
	{1, "settle(of int, lanes text[], entered bigint) RETURNS void"},
	{1, "tend(of int, now_ms bigint) RETURNS void"},
	{1, "tidy(now_ms bigint, most bigint) RETURNS bigint"},
	{1, "faults() RETURNS TABLE(sentence text, amount bigint)"},
	{2, "now_ms() RETURNS bigint"},
	{2, "stripe(name text) RETURNS int"},
	{2, "shard(queue text, lane text, id bigint, shards int) RETURNS int"},
	{2, "check_name(what text, name text) RETURNS void"},
	{2, "put(queue text, payload bytea, " PUT_ARGS ") RETURNS bigint"},
	{2, "put(queue text, payload text, " PUT_ARGS ") RETURNS bigint"},
	{2, "put(queue text, payload jsonb, " PUT_ARGS ") RETURNS bigint"},
	{2, "put_many(queue text, payloads bytea[], " PUT_ARGS ") RETURNS SETOF bigint"},
	{2, "put_many(queue text, payloads text[], " PUT_ARGS ") RETURNS SETOF bigint"},
	{2, "find(number bigint) RETURNS baton.batch"},
	{2, "cancel(id bigint) RETURNS bool"},
	{2, "complete(claim text, token text) RETURNS void"},
	{2, "staged_complete(s baton.staged) RETURNS void"},
	{2, "staged_cancel(s baton.staged) RETURNS void"},
	{2, "staged_put(mine xid8) RETURNS void"},
	{2, "on_commit() RETURNS trigger"},
	{3, "ring(who text) RETURNS void"},
	{3, "packed(word text) RETURNS bytea"},
	{3, "known(key_hash bytea, content_hash bytea) RETURNS bigint"},
	{3, "admit(subject text, fence bigint) RETURNS void"},
	{3, "guard(subjects text[]) RETURNS void"},
	{5, "is_key(line text) RETURNS bool"},
	{5, "key_state(of int, key text, OUT seq bigint, OUT head bool, OUT free bool, "
            "OUT busy bigint) RETURNS record"},
	{5, "settle_keys(of int, keys text[], entered bigint) RETURNS void"},
	{5, "settle_limit(of int) RETURNS void"},
	{6, "unpack(first bigint, bytes bytea) RETURNS TABLE(seq bigint, payload bytea)"},
	{6, "melt(firsts bigint[]) RETURNS void"},
	{6, "bulk_of(id bigint) RETURNS bigint"},
	{6, "gather(of int) RETURNS void"},
	{7, "waits(b baton.batch) RETURNS bool"},
	{7, "stops(c baton.claim) RETURNS bool"},
	{7, "rival_enter(of int, number bigint, now_ms bigint) RETURNS void"},
};

/* From version 2 on; and what a user has made of the view. */
static const char past_rest[] =
	"CREATE CONSTRAINT TRIGGER staged AFTER INSERT ON baton.staged "
	"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION baton.on_commit(); "
	"CREATE VIEW baton.jobs AS SELECT b.seq AS id, q.name AS queue, b.lane, "
	"'ready' AS state, 9 - b.rank AS priority, b.attempts, "
	"to_timestamp(b.put_at / 1000.0) AS put_at, to_timestamp(b.due / 1000.0) AS due, "
	"convert_from(b.error, 'UTF8') AS error, b.payload "
	"FROM baton.batch b JOIN baton.queue q ON q.id = b.queue; "
	"CREATE OR REPLACE VIEW public.mine AS SELECT id, state FROM baton.jobs; "
	"GRANT USAGE ON SCHEMA baton TO baton_put, baton_runner, baton_operator; "
	"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO baton_runner, "
	"baton_operator";

#endif
