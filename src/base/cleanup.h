/* Cleanup by attribute: what goes out of scope is released, unless it was visibly moved away. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

/* AUTO(fn) type v = ...;   calls fn(&v) at the end of the scope. */
#define AUTO(fn) __attribute__((cleanup(fn)))

/* The value of the pointer `p`, which becomes NULL: ownership moves to the receiver. */
#define TAKE(p)                                     \
	({                                          \
		__typeof__(p) *take_from_ = &(p);   \
		__typeof__(p) taken_ = *take_from_; \
		*take_from_ = NULL;                 \
		taken_;                             \
	})

/* The descriptor, which becomes -1: as TAKE(). */
static inline int fd_take(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

/* Closes *fd unless it is -1. Keeps errno. For AUTO(). */
void fd_closep(int *fd);

#endif
