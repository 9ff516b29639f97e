/* Connections on their way to a backend. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/packet.h"
#include "handoff/state.h"

/* A backend that has taken a connection says so when it calls the library next. Until then its end
 * would not be seen, as the broker has a copy; so it looks by itself, after so long. */
#define LOOK_MS 20

enum baton_err passings_init(struct baton_broker *b, uint32_t max, int64_t ack_ms)
{
	const struct tokens_policy policy = {TOKENS_TTL_MS, max, TOKENS_TRIES};
	enum baton_err e = tokens_init(&b->tokens, b->alloc, policy, token_source_pool(&b->pool));
	if (e == BATON_OK)
		e = acks_init(&b->acks, b->alloc, &b->tokens, ack_ms, max);
	if (e == BATON_OK)
		e = chains_init(&b->by_connection, b->alloc, max);
	if (e != BATON_OK)
		return e;
	b->passings = mem_new(b->alloc, max, sizeof *b->passings);
	if (!b->passings)
		return fail_memory(max * sizeof *b->passings, "connections");
	b->passings_max = max;
	for (uint32_t i = 0; i < max; i++)
		b->passings[i] = (struct passing){.fd = -1, .next_free = i + 1};
	return BATON_OK;
}

void passings_done(struct baton_broker *b)
{
	for (uint32_t i = 0; b->passings && i < b->passings_max; i++)
		if (b->passings[i].state != 0)
			close(b->passings[i].fd);
	if (b->passings) {
		explicit_bzero(b->passings, b->passings_max * sizeof *b->passings);
		mem_free(b->alloc, b->passings, b->passings_max, sizeof *b->passings);
	}
	acks_done(&b->acks);
	tokens_done(&b->tokens);
	token_pool_wipe(&b->pool);
	chains_done(&b->by_connection);
}

static struct passing *passing_find(struct baton_broker *b, uint64_t connection)
{
	uint32_t i = chains_first(&b->by_connection, connection);
	while (i != CHAINS_END && b->passings[i].connection != connection)
		i = chains_next(&b->by_connection, i);
	return i == CHAINS_END ? NULL : &b->passings[i];
}

/* Gives the place back. The descriptor is closed: what becomes of the connection was done
 * before. */
static void passing_end(struct baton_broker *b, struct passing *p)
{
	uint32_t place = (uint32_t)(p - b->passings);
	chains_remove(&b->by_connection, p->connection, place);
	if (p->word > 0) {
		slate_clear(&p->channel->slate, p->word);
		links_remove(&p->links);
	}
	if (p->fd >= 0)
		close(p->fd);
	p->channel->pending--;
	b->passings_count--;
	explicit_bzero(p, sizeof *p);
	*p = (struct passing){.fd = -1, .next_free = b->passings_free};
	b->passings_free = place;
}

static void latency_keep(struct baton_broker *b, struct baton_duration took)
{
	b->latencies[b->latencies_count % LATENCIES] = took.ns;
	b->latencies_count++;
}

/* The backend has it: the copy of the descriptor goes. */
static void passing_let_go(struct baton_broker *b, struct passing *p, struct baton_duration took)
{
	struct channel *channel = p->channel;
	CHECK(passing_next(&p->state, PASSING_ACCEPTED));
	b->counts[COUNT_GRANTED]++;
	channel->granted++;
	channel->unanswered = 0;
	fallback_succeeded(&channel->attempts);
	latency_keep(b, took);
	passing_end(b, p);
}

/* The backend has taken it by its word, whether it has said so yet or not. */
static void passing_taken(struct baton_broker *b, struct passing *p, struct baton_mono when)
{
	int64_t longest = baton_mono_sub(broker_now(b), p->since).ns;
	int64_t took = baton_mono_sub(when, p->since).ns;
	took = took < longest ? took : longest;
	acks_abandon(&b->acks, &p->token, NULL);
	passing_let_go(b, p, (struct baton_duration){took > 0 ? took : 0});
}

/* Takes it back: whoever has a copy of the descriptor finds the connection shut down. False: the
 * backend has taken it before. */
static bool passing_revoke(struct baton_broker *b, struct passing *p, enum passing_event event,
                           enum fallback_reason reason)
{
	struct channel *channel = p->channel;
	struct baton_mono when;
	if (p->word > 0 && !slate_revoke(&channel->slate, p->word, p->connection, &when)) {
		passing_taken(b, p, when);
		return false;
	}
	CHECK(passing_next(&p->state, event));
	acks_abandon(&b->acks, &p->token, NULL);
	if (p->fd >= 0)
		shutdown(p->fd, SHUT_RDWR);
	b->reasons[reason]++;
	channel->failed++;
	fallback_failed(&channel->attempts, broker_now(b));
	BATON_LOG(b->log, BATON_LOG_WARN, "connection taken back",
	          baton_field_uint("connection", p->connection),
	          baton_field_str("service", baton_str_z(channel->service->name)),
	          baton_field_str("why", baton_str_z(fallback_name(reason))));
	passing_end(b, p);
	return true;
}

/* The backend wants it: the Grant is sent, unless it has it already. */
static void passing_grant(struct baton_broker *b, struct passing *p, struct baton_duration took)
{
	struct channel *channel = p->channel;
	struct baton_mono when;
	/* One that does not take it by its word cannot do so from now on. */
	if (p->word > 0 && !slate_revoke(&channel->slate, p->word, p->connection, &when)) {
		passing_taken(b, p, when);
		return;
	}
	const struct wire_handoff grant = {
		.kind = WIRE_GRANT,
		.is.grant = {token_str(&p->token), p->connection},
	};
	if (!(channel->capabilities & WIRE_IS_REPEATABLE) &&
	    packet_send(channel->source.fd, &grant, -1) != PACKET_DONE) {
		passing_revoke(b, p, PASSING_BROKEN, FALLBACK_ACK_TIMEOUT);
		return;
	}
	passing_let_go(b, p, took);
}

/* A place for one that is offered. */
static struct passing *passing_place(struct baton_broker *b, struct channel *channel,
                                     uint64_t connection, const struct token *token)
{
	CHECK(b->passings_count < b->passings_max);
	uint32_t place = b->passings_free;
	struct passing *p = &b->passings[place];
	b->passings_free = p->next_free;
	*p = (struct passing){
		.state = PASSING_OFFERED,
		.fd = -1,
		.connection = connection,
		.channel = channel,
		.token = *token,
		.since = broker_now(b),
	};
	chains_add(&b->by_connection, connection, place);
	channel->pending++;
	b->passings_count++;
	return p;
}

/* It can be taken by that word, if it is one. */
static void word_have(struct baton_broker *b, struct passing *p, uint32_t word)
{
	p->word = word;
	if (word == 0)
		return;
	if (links_empty(&b->by_word))
		b->look_at = baton_mono_add(p->since, baton_duration_ms(LOOK_MS));
	links_append(&b->by_word, &p->links);
}

static struct passing *passing_add(struct baton_broker *b, struct peer *peer,
                                   struct channel *channel, const struct token *token)
{
	struct passing *p = passing_place(b, channel, peer->connection, token);
	p->fd = peer->source.fd;
	word_have(b, p, slate_offer(&channel->slate, p->connection));
	return p;
}

enum baton_err passings_adopt(struct baton_broker *b, const struct wire_item *item,
                              struct channel *channel, int *fd)
{
	struct token token;
	struct baton_mono since = {(int64_t)item->since};
	uint32_t word = item->capabilities < SLATE_WORDS ? (uint32_t)item->capabilities : 0;
	if (!channel || token_parse(item->token, &token) != TOKEN_GOOD || since.ns < 0 ||
	    word != item->capabilities || (word > 0 && !slate_adopt(&channel->slate, word)))
		return fail(BATON_INVALID, "the broker sent a connection that is on no way");
	if (b->passings_count == b->passings_max)
		return fail(BATON_FULL, "more than %u connections are on their way",
		            (unsigned)b->passings_max);
	const struct token_binding binding = {baton_str_z(channel->service->name),
	                                      channel->generation, item->id};
	enum baton_err e =
		tokens_adopt(&b->tokens, &binding,
	                     baton_mono_add(since, baton_duration_ms(TOKENS_TTL_MS)), &token);
	if (e == BATON_OK)
		e = acks_register(&b->acks, &token, channel->id, item->id, since);
	if (e == BATON_OK) {
		struct passing *p = passing_place(b, channel, item->id, &token);
		p->fd = fd_take(fd);
		p->since = since;
		word_have(b, p, word);
	}
	token_wipe(&token);
	return e;
}

static enum fallback_reason reason_of(enum packet_got got)
{
	switch (got) {
	case PACKET_DENIED:
		return FALLBACK_PERMISSION_DENIED;
	case PACKET_NOT_NOW:
	case PACKET_FAILED:
		return FALLBACK_FD_PRESSURE;
	case PACKET_DONE:
	case PACKET_HUNG_UP:
	case PACKET_STRANGE:
	case PACKET_LOST:
		break;
	}
	return FALLBACK_ACK_TIMEOUT;
}

bool passings_offer(struct baton_broker *b, struct peer *peer, struct channel *channel,
                    const struct wire_hello *hello, const struct token *token)
{
	const struct site_peer who = peer->who;
	struct passing *p = passing_add(b, peer, channel, token);
	enum baton_err e = acks_register(&b->acks, token, channel->id, p->connection, p->since);
	struct baton_mono deadline =
		baton_mono_add(p->since, baton_duration_ms(b->acks.timeout_ms));
	const struct wire_handoff offer = {
		.kind = WIRE_OFFER,
		.is.offer =
			{
				.token = token_str(&p->token),
				.service = baton_str_z(channel->service->name),
				.correlation = p->connection,
				.hello = *hello,
				.credentials = {(uint32_t)who.pid, who.uid, who.gid},
				.deadline = (uint64_t)deadline.ns,
				.word = p->word,
				.trace = peer->trace,
			},
	};
	enum packet_got got =
		e == BATON_OK ? packet_send(channel->source.fd, &offer, p->fd) : PACKET_FAILED;
	/* Only now: the backend need not wait for it. */
	source_ignore(b, &peer->source);
	peer->source.fd = -1;
	if (got == PACKET_DONE) {
		b->counts[COUNT_OFFERED]++;
		return true;
	}
	if (peer->listener)
		peer->source.fd = fd_take(&p->fd);
	passing_revoke(b, p, PASSING_BROKEN, reason_of(got));
	return !peer->listener;
}

/* What the registry says to a token that was right. */
static void ack_judge(struct baton_broker *b, struct passing *p, const struct wire_ack *ack)
{
	struct baton_duration took;
	switch (acks_acknowledge(&b->acks, &p->token, p->channel->id, broker_now(b), &took)) {
	case ACK_IN_TIME:
		if (ack->accepted)
			passing_grant(b, p, took);
		else
			passing_revoke(b, p, PASSING_REFUSED, FALLBACK_PERMISSION_DENIED);
		break;
	case ACK_TOO_LATE:
		passing_revoke(b, p, PASSING_TIMEOUT, FALLBACK_ACK_TIMEOUT);
		break;
	case ACK_NOT_PENDING:
		b->counts[COUNT_STRAY]++;
		break;
	}
}

/* A backend has so many tries. */
static void token_wrong(struct baton_broker *b, struct channel *channel, const char *why)
{
	b->counts[COUNT_WRONG_TOKENS]++;
	BATON_LOG(b->log, BATON_LOG_WARN, "wrong token",
	          baton_field_str("service", baton_str_z(channel->service->name)),
	          baton_field_int("pid", channel->who.pid),
	          baton_field_str("why", baton_str_z(why)));
	if (++channel->wrong >= CHANNEL_WRONG_MAX)
		channels_end(b, channel, FALLBACK_INTEGRITY_MISMATCH);
}

void passings_ack(struct baton_broker *b, struct channel *channel, const struct wire_ack *ack)
{
	const struct token_binding binding = {baton_str_z(channel->service->name),
	                                      channel->generation, ack->correlation};
	struct token token;
	bool good = token_parse(ack->token, &token) == TOKEN_GOOD;
	/* What is not of the right length is not right. */
	if (!good)
		memset(&token, 0, sizeof token);
	struct passing *p = passing_find(b, ack->correlation);
	enum token_verdict verdict =
		p && p->channel == channel
			? tokens_consume(&b->tokens, &binding, &token, broker_now(b))
			: TOKEN_NOT_PENDING;
	token_wipe(&token);
	switch (verdict) {
	case TOKEN_ACCEPTED:
		ack_judge(b, p, ack);
		break;
	case TOKEN_EXPIRED:
		passing_revoke(b, p, PASSING_TIMEOUT, FALLBACK_ACK_TIMEOUT);
		break;
	case TOKEN_NOT_PENDING:
		b->counts[COUNT_STRAY]++;
		break;
	case TOKEN_MISMATCH:
		token_wrong(b, channel, good ? "it is another one" : baton_err_detail());
		break;
	}
}

/* Nobody has acknowledged it in time. Those that were on their way at the same time say no more
 * about the backend than one. */
static void passing_expire(struct baton_broker *b, struct passing *p, struct baton_mono now)
{
	struct channel *channel = p->channel;
	bool next = p->since.ns >= channel->silent_at.ns;
	if (!passing_revoke(b, p, PASSING_TIMEOUT, FALLBACK_ACK_TIMEOUT) || !next)
		return;
	channel->silent_at = now;
	if (++channel->unanswered >= CHANNEL_UNANSWERED_MAX)
		children_silent(b, channel);
}

void passings_expire(struct baton_broker *b, struct baton_mono now)
{
	struct ack_expired expired;
	while (acks_expire(&b->acks, now, &expired)) {
		struct passing *p = passing_find(b, expired.tag);
		if (p)
			passing_expire(b, p, now);
		token_wipe(&expired.token);
	}
}

struct baton_mono passings_next(const struct baton_broker *b)
{
	return links_empty(&b->by_word) ? BATON_MONO_NEVER : b->look_at;
}

void passings_look(struct baton_broker *b, struct baton_mono now)
{
	struct baton_mono when;
	bool again = false;
	if (baton_mono_live(passings_next(b), now))
		return;
	for (struct links *l = b->by_word.next, *next; l != &b->by_word; l = next) {
		struct passing *p = LINKS_OF(l, struct passing, links);
		next = l->next;
		/* What a backend says has its turn first, and more may lie there. */
		if (p->channel->source.round == b->rounds ||
		    !slate_is_taken(&p->channel->slate, p->word, &when))
			continue;
		if (p->seen)
			passing_taken(b, p, when);
		else
			again = p->seen = true;
	}
	/* However many there are, it takes a small part of the time. */
	b->look_at =
		again ? now
		      : baton_mono_add(now, baton_duration_ms(LOOK_MS + b->passings_count / 100));
}

void passings_delay(struct baton_broker *b, struct baton_duration stood)
{
	for (uint32_t i = 0; b->passings_count > 0 && i < b->passings_max; i++) {
		struct passing *p = &b->passings[i];
		if (p->state != PASSING_OFFERED)
			continue;
		p->since = baton_mono_add(p->since, stood);
		/* It is waited for already, so there is a place. */
		CHECK(acks_register(&b->acks, &p->token, p->channel->id, p->connection, p->since) ==
		      BATON_OK);
	}
}

void passings_drop(struct baton_broker *b, struct channel *channel, enum fallback_reason reason)
{
	for (uint32_t i = 0; channel->pending > 0 && i < b->passings_max; i++) {
		struct passing *p = &b->passings[i];
		if (p->state == PASSING_OFFERED && p->channel == channel)
			passing_revoke(b, p, PASSING_BROKEN, reason);
	}
}
