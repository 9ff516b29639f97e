/* Who has the connections of which service. */
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/mem.h"
#include "handoff/state.h"

static struct service **bucket_of(struct baton_broker *b, struct baton_str name)
{
	return &b->services[hash_bytes(&b->seed, name.ptr, name.len) % SERVICE_BUCKETS];
}

struct service *services_find(struct baton_broker *b, struct baton_str name)
{
	struct service *s = *bucket_of(b, name);
	while (s && !baton_str_equal(baton_str_z(s->name), name))
		s = s->next;
	return s;
}

static bool is_listened_for(const struct baton_broker *b, const struct service *s)
{
	for (size_t i = 0; i < b->listeners_count; i++) {
		const struct listener *l = &b->listeners[i];
		if (l->others == s)
			return true;
		for (size_t j = 0; j < l->names_count; j++)
			if (l->names[j].service == s)
				return true;
	}
	return false;
}

/* Whether anything leads to it: only those that are defined have processes. */
static bool is_used(const struct baton_broker *b, const struct service *s)
{
	return s->definition || s->stored > 0 || !links_empty(&s->channels) ||
	       is_listened_for(b, s) || peers_wait_for(b, s);
}

/* Forgets a service that is but a name. False: there is none. */
static bool one_forget(struct baton_broker *b)
{
	for (int i = 0; i < SERVICE_BUCKETS; i++)
		for (struct service **at = &b->services[i]; *at; at = &(*at)->next) {
			struct service *s = *at;
			if (is_used(b, s))
				continue;
			*at = s->next;
			mem_free(b->alloc, s, 1, sizeof *s);
			b->services_count--;
			return true;
		}
	return false;
}

enum baton_err services_make(struct baton_broker *b, struct baton_str name, struct service **ret)
{
	struct service *s = services_find(b, name);
	if (!s) {
		if (b->services_count == SERVICES_MAX && !one_forget(b))
			return fail(BATON_FULL, "there are %d services, and no room for another",
			            SERVICES_MAX);
		s = mem_new(b->alloc, 1, sizeof *s);
		if (!s)
			return fail_memory(sizeof *s, "a service");
		struct service **bucket = bucket_of(b, name);
		memcpy(s->name, name.ptr, name.len);
		links_init(&s->channels);
		s->next = *bucket;
		*bucket = s;
		b->services_count++;
	}
	*ret = s;
	return BATON_OK;
}

struct channel *services_older(const struct service *service, const struct channel *than)
{
	struct channel *best = NULL;
	for (struct links *l = service->channels.next; l != &service->channels; l = l->next) {
		struct channel *c = LINKS_OF(l, struct channel, of_service);
		if (!c->leaving && (!than || c->generation < than->generation) &&
		    (!best || c->generation > best->generation))
			best = c;
	}
	return best;
}

struct channel *services_newest(const struct service *service, struct baton_str owner)
{
	struct channel *best = NULL;
	for (struct links *l = service->channels.next; l != &service->channels; l = l->next) {
		struct channel *c = LINKS_OF(l, struct channel, of_service);
		if (!c->leaving && baton_str_equal(baton_str_z(c->owner), owner) &&
		    (!best || c->generation > best->generation))
			best = c;
	}
	return best;
}

struct channel *services_current(const struct service *service)
{
	return services_older(service, NULL);
}

struct channel *services_owned(struct baton_broker *b, const char *owner, struct baton_str service)
{
	struct channel *best = NULL;
	for (struct links *l = b->channels.next; l != &b->channels; l = l->next) {
		struct channel *c = LINKS_OF(l, struct channel, source.links);
		if (strcmp(c->owner, owner) == 0 && (!best || c->generation > best->generation) &&
		    (service.len == 0 || baton_str_equal(service, baton_str_z(c->service->name))))
			best = c;
	}
	return best;
}

void services_done(struct baton_broker *b)
{
	for (int i = 0; i < SERVICE_BUCKETS; i++) {
		while (b->services[i]) {
			struct service *s = b->services[i];
			b->services[i] = s->next;
			mem_free(b->alloc, s, 1, sizeof *s);
		}
	}
}
