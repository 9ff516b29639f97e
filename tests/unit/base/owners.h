/* What the tests of baton_owner_is_dead() have in common: children that say who they are. */
#ifndef UNIT_BASE_OWNERS_H
#define UNIT_BASE_OWNERS_H

#include <baton/owner.h>

#include "support/child.h"
#include "support/harness.h"

static const struct baton_str name = BATON_STR("worker");

static inline struct baton_owner self(void)
{
	struct baton_owner owner;
	assert_int_equal(baton_owner_self(name, &owner), BATON_OK);
	return owner;
}

static inline bool is_dead(const struct baton_owner *other)
{
	struct baton_owner judge = self();
	return baton_owner_is_dead(&judge, other, BATON_REACH_HOSTS);
}

/* Sends a description of this process. */
static inline bool report(int channel)
{
	struct baton_owner owner;
	char text[BATON_OWNER_TEXT];
	if (baton_owner_self(name, &owner) != BATON_OK)
		return false;
	channel_send(channel, baton_owner_print(&owner, text));
	return true;
}

static inline int report_and_wait(int channel, void *arg)
{
	(void)arg;
	char message[8];
	if (!report(channel))
		return 1;
	channel_receive(channel, message, sizeof message);
	return 0;
}

/* The next description that the child sends. */
static inline struct baton_owner reported(const struct child *c)
{
	struct baton_owner owner;
	char text[BATON_OWNER_TEXT];
	assert_true(channel_receive(c->channel, text, sizeof text));
	assert_int_equal(baton_owner_parse(baton_str_z(text), &owner), BATON_OK);
	return owner;
}

static inline void end(struct child *c)
{
	child_hang_up(c);
	assert_int_equal(child_reap(c), 0);
}

/* For children whose system did not let them: visible in the report, and no failure. */
static inline void assert_done_or_skip(struct child *c)
{
	int code = child_reap(c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

#endif
