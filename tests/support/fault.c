/* An allocator that knows what is live, checks what it gets back, and fails when told to. */
#include "support/fault.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x6b636f6c62206576)
#define JUNK 0xa5

/* Stands before each block. */
struct head {
	_Alignas(max_align_t) uint64_t magic;
	size_t size;
};

static void give_up(const char *what, size_t is, size_t said)
{
	fprintf(stderr, "fault: %s: %zu bytes, given as %zu\n", what, is, said);
	abort();
}

/* The head of a block that the code under test gives back as one of `size` bytes. */
static struct head *head_of(void *block, size_t size)
{
	struct head *head = (struct head *)block - 1;
	if (head->magic != MAGIC)
		give_up("a block that is not live", 0, size);
	if (head->size != size)
		give_up("a block with a wrong size", head->size, size);
	return head;
}

static void drop(struct fault *f, struct head *head)
{
	pthread_mutex_lock(&f->mu);
	f->blocks--;
	f->bytes -= head->size;
	pthread_mutex_unlock(&f->mu);
	memset(head, JUNK, sizeof *head + head->size);
	free(head);
}

/* Counts an allocation of `size` bytes, and tells whether it may succeed. */
static bool admit(struct fault *f, size_t size)
{
	pthread_mutex_lock(&f->mu);
	f->count++;
	bool fails = f->armed == 1;
	if (f->armed > 0)
		f->armed--;
	if (fails) {
		f->fired = true;
	} else {
		f->blocks++;
		f->bytes += size;
	}
	pthread_mutex_unlock(&f->mu);
	return !fails;
}

/* Every block moves on every resize, and new bytes are junk, so that nobody relies on luck. */
static void *resize(const struct baton_alloc *self, void *old, size_t old_size, size_t new_size)
{
	struct fault *f = (struct fault *)self;
	struct head *from = old != NULL ? head_of(old, old_size) : NULL;
	if (old == NULL && old_size != 0)
		give_up("no block", 0, old_size);
	if (new_size == 0) {
		if (from != NULL)
			drop(f, from);
		return NULL;
	}
	if (!admit(f, new_size))
		return NULL;
	struct head *to = malloc(sizeof *to + new_size);
	if (to == NULL)
		give_up("no memory for the test itself", 0, new_size);
	*to = (struct head){.magic = MAGIC, .size = new_size};
	memset(to + 1, JUNK, new_size);
	if (from != NULL) {
		memcpy(to + 1, old, old_size < new_size ? old_size : new_size);
		drop(f, from);
	}
	return to + 1;
}

void fault_init(struct fault *f)
{
	*f = (struct fault){.alloc = {.resize = resize}};
	pthread_mutex_init(&f->mu, NULL);
}

void fault_done(struct fault *f)
{
	if (f->blocks != 0)
		give_up("blocks are still live", f->bytes, f->blocks);
	pthread_mutex_destroy(&f->mu);
}

void fault_arm(struct fault *f, unsigned n)
{
	pthread_mutex_lock(&f->mu);
	f->armed = n;
	f->fired = false;
	pthread_mutex_unlock(&f->mu);
}

bool fault_fired(struct fault *f)
{
	pthread_mutex_lock(&f->mu);
	bool fired = f->fired;
	pthread_mutex_unlock(&f->mu);
	return fired;
}

static size_t read_size(struct fault *f, const size_t *field)
{
	pthread_mutex_lock(&f->mu);
	size_t value = *field;
	pthread_mutex_unlock(&f->mu);
	return value;
}

size_t fault_count(struct fault *f)
{
	return read_size(f, &f->count);
}

size_t fault_live_blocks(struct fault *f)
{
	return read_size(f, &f->blocks);
}

size_t fault_live_bytes(struct fault *f)
{
	return read_size(f, &f->bytes);
}
