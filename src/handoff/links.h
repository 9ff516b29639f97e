/* Lists whose links are in what they list. */
#ifndef HANDOFF_LINKS_H
#define HANDOFF_LINKS_H

#include <stdbool.h>
#include <stddef.h>

struct links {
	struct links *prev;
	struct links *next;
};

/* An empty list, or something that is in none. */
static inline void links_init(struct links *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool links_empty(const struct links *l)
{
	return l->next == l;
}

/* Fine for what is in none. */
static inline void links_remove(struct links *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	links_init(l);
}

static inline void links_append(struct links *list, struct links *l)
{
	l->prev = list->prev;
	l->next = list;
	list->prev->next = l;
	list->prev = l;
}

/* What has the links `l` as that member. */
#define LINKS_OF(l, type, member) ((type *)(void *)((char *)(l)-offsetof(type, member)))

#endif
