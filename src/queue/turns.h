/* Sharing out claims among shards. */
#ifndef QUEUE_TURNS_H
#define QUEUE_TURNS_H

#include <stddef.h>

/* How many each of `count` shards may give now, in order, if `left` may be given in all. Done again
 * and again with those that had as many, each has given in the end as many as when they give one
 * each in turn. `count` is not 0. */
static inline size_t turns_each(size_t left, size_t count)
{
	return left > count ? left / count : 1;
}

#endif
