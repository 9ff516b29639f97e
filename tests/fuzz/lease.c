/* Whatever a few owners ask for, whenever, by a clock that goes anywhere: a lease is never two
 * owners' at once, its fence never comes again, and who lost it can prove nothing. */
#include "queue/lease.h"

#include <stdbool.h>

#include "fuzz/fuzz.h"

#define OWNERS 3

struct world {
	struct lease_row row;
	bool known; /* the store has a row */
	struct baton_store_time now;
	struct lease_claimed had[OWNERS]; /* the last that each was given; fence 0: none */
	struct lease_claimed old[OWNERS]; /* the one before that                         */
	uint64_t fence;                   /* the last that anybody was given             */
};

static struct baton_id id_of(uint8_t n)
{
	return (struct baton_id){{n}};
}

static void give(struct world *w, uint8_t who, const struct lease_request *r, uint8_t ttl)
{
	w->row.held = true;
	w->row.owner = (struct baton_owner){.incarnation = r->incarnation};
	w->row.nonce = r->nonce;
	w->row.token = id_of((uint8_t)(w->fence / 2 + 1));
	w->row.fence = ++w->fence;
	w->row.expires_at = baton_store_time_add(w->now, baton_duration_ms(ttl));
	w->known = true;
	w->old[who] = w->had[who];
	w->had[who] = (struct lease_claimed){r->incarnation, w->row.token, w->row.fence};
}

static void ask(struct world *w, uint8_t what, uint8_t ttl)
{
	uint8_t who = what % OWNERS;
	const struct lease_request r = {
		.incarnation = id_of((uint8_t)(who + 1)),
		.nonce = id_of(what >> 5 & 1),
		.reentrant = what >> 6 & 1,
		.holder_is_dead = what >> 7 & 1,
		.now = w->now,
	};
	bool live = w->known && lease_is_live(&w->row, w->now);
	bool own = live && baton_id_equal(&w->row.owner.incarnation, &r.incarnation);
	switch (lease_judge(w->known ? &w->row : NULL, &r)) {
	case LEASE_TAKE:
		CHECK(!live || (!own && r.holder_is_dead));
		give(w, who, &r, ttl);
		break;
	case LEASE_EXTEND:
		CHECK(own && (r.reentrant || r.nonce.bytes[0] != 0));
		CHECK(lease_is_proved(&w->row, &w->had[who]));
		break;
	case LEASE_YIELD:
		CHECK(live && !own && !r.holder_is_dead);
		break;
	case LEASE_YIELD_OWN:
		CHECK(own && !r.reentrant);
		break;
	}
}

static void renew(struct world *w, uint8_t who, uint8_t ttl, bool shorten)
{
	struct baton_store_time before = w->row.expires_at;
	if (!w->known || !lease_is_live(&w->row, w->now) || !lease_is_proved(&w->row, &w->had[who]))
		return;
	w->row.expires_at = lease_extended(before, w->now, baton_duration_ms(ttl), shorten);
	CHECK(shorten || w->row.expires_at.ms >= before.ms);
	CHECK(shorten || w->row.expires_at.ms >= w->now.ms + ttl);
}

/* Only the last who was given it can prove it, and only while it is held. */
static void check(const struct world *w)
{
	for (int i = 0; i < OWNERS && w->known; i++) {
		CHECK(lease_is_proved(&w->row, &w->had[i]) ==
		      (w->row.held && w->had[i].fence == w->fence));
		CHECK(!lease_is_proved(&w->row, &w->old[i]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.now = {1000}};
	for (size_t i = 0; i + 2 < size; i += 3) {
		uint8_t who = data[i + 1] % OWNERS;
		switch (data[i] % 4) {
		case 0:
			ask(&w, data[i + 1], data[i + 2]);
			break;
		case 1:
			renew(&w, who, data[i + 2], data[i + 1] >> 7);
			break;
		case 2:
			w.now.ms += (int64_t)data[i + 2] - 100;
			break;
		default:
			if (w.known && lease_is_proved(&w.row, &w.had[who]))
				w.row.held = false;
			break;
		}
		check(&w);
	}
	return 0;
}
