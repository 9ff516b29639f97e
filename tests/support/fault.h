/* An allocator that knows what is live, checks what it gets back, and fails when told to.
 *
 *	for (unsigned n = 1;; n++) {
 *		fault_arm(&fault, n);
 *		e = scenario(&fault.alloc);
 *		if (!fault_fired(&fault))
 *			break;
 *		assert_int_equal(e, BATON_NO_MEMORY);
 *		assert_int_equal(fault_live_blocks(&fault), 0);
 *	}
 */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <baton/alloc.h>

struct fault {
	struct baton_alloc alloc; /* [const] what the code under test gets                        */
	pthread_mutex_t mu;
	unsigned armed; /* [mu] how many allocations from now the failing one is; 0: none       */
	bool fired;     /* [mu]                                                                 */
	size_t count;   /* [mu] allocations that were asked for, the failing ones too           */
	size_t blocks;  /* [mu] live                                                            */
	size_t bytes;   /* [mu] live                                                            */
};

/* Nothing live, nothing armed. */
void fault_init(struct fault *f);

/* Ends it. Whatever is still live fails the test. */
void fault_done(struct fault *f);

/* The `n`th allocation from now fails, once; 0: none does. Forgets what was armed before. */
void fault_arm(struct fault *f, unsigned n);

/* Whether the armed allocation was reached since fault_arm(). */
bool fault_fired(struct fault *f);

size_t fault_count(struct fault *f);
size_t fault_live_blocks(struct fault *f);
size_t fault_live_bytes(struct fault *f);

#endif
