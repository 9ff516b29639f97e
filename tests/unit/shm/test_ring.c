/* A ring of short entries: what is read is whole, and what is lost is counted. */
#include "shm/ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/harness.h"
#include "support/soak.h"

#define CAPACITY 8u

static struct ring *ring_new(void)
{
	struct ring *r = aligned_alloc(64, ring_size(CAPACITY));
	assert_non_null(r);
	memset(r, 0, ring_size(CAPACITY));
	return r;
}

static struct ring_item item_of(uint64_t n)
{
	return (struct ring_item){n, ~n, n * 3};
}

static void assert_next(const struct ring *r, struct ring_reader *reader, uint64_t n)
{
	struct ring_item item;
	assert_int_equal(ring_get(r, CAPACITY, reader, &item), RING_ITEM);
	assert_true(item.a == n && item.b == ~n && item.c == n * 3);
}

static void an_empty_ring_has_nothing(void **state)
{
	(void)state;
	struct ring *r = ring_new();
	struct ring_reader reader = {.next = ring_now(r)};
	struct ring_item item;
	assert_int_equal(ring_get(r, CAPACITY, &reader, &item), RING_NONE);
	assert_int_equal(reader.lost, 0);
	free(r);
}

static void entries_are_read_in_order_by_each_reader(void **state)
{
	(void)state;
	struct ring *r = ring_new();
	struct ring_reader one = {.next = ring_now(r)}, other = one;
	struct ring_item item;
	for (uint64_t n = 0; n < 5 * CAPACITY; n++) {
		ring_put(r, CAPACITY, item_of(n));
		assert_next(r, &one, n);
		if (n % CAPACITY == CAPACITY - 1)
			for (uint64_t m = n + 1 - CAPACITY; m <= n; m++)
				assert_next(r, &other, m);
	}
	assert_int_equal(ring_get(r, CAPACITY, &one, &item), RING_NONE);
	assert_int_equal(ring_get(r, CAPACITY, &other, &item), RING_NONE);
	assert_int_equal(one.lost + other.lost, 0);
	free(r);
}

static void a_slow_reader_is_told_how_many_it_lost(void **state)
{
	(void)state;
	for (uint64_t more = 1; more < 3 * CAPACITY; more++) {
		struct ring *r = ring_new();
		struct ring_reader reader = {.next = ring_now(r)};
		for (uint64_t n = 0; n < CAPACITY + more; n++)
			ring_put(r, CAPACITY, item_of(n));
		for (uint64_t n = more; n < CAPACITY + more; n++)
			assert_next(r, &reader, n);
		assert_int_equal(reader.lost, more);
		free(r);
	}
}

/* As somebody does who is stopped or dies before he has finished. */
static void begin_one(struct ring *r)
{
	uint64_t n = atomic_fetch_add(&r->head, 1);
	atomic_store(&r->entries[n % CAPACITY].state, ring_writing(n));
}

static void an_entry_that_is_not_finished_can_be_waited_for_or_skipped(void **state)
{
	(void)state;
	struct ring *r = ring_new();
	struct ring_reader reader = {.next = ring_now(r)}, patient = reader;
	struct ring_item item;
	begin_one(r);
	ring_put(r, CAPACITY, item_of(1));
	assert_int_equal(ring_get(r, CAPACITY, &reader, &item), RING_PENDING);
	assert_int_equal(ring_get(r, CAPACITY, &reader, &item), RING_PENDING);
	ring_skip(&reader);
	assert_next(r, &reader, 1);
	assert_int_equal(reader.lost, 1);
	/* He goes on after all. */
	atomic_store(&r->entries[0].b, ~UINT64_C(0));
	atomic_store(&r->entries[0].state, ring_written(0, item_of(0)));
	assert_next(r, &patient, 0);
	assert_next(r, &patient, 1);
	assert_int_equal(patient.lost, 0);
	free(r);
}

/* Every entry is read or counted as lost, once. */
static void a_dead_writer_costs_one_entry(void **state)
{
	(void)state;
	struct ring *r = ring_new();
	struct ring_reader reader = {.next = ring_now(r)};
	struct ring_item item;
	uint64_t read = 0;
	begin_one(r);
	for (uint64_t n = 1; n < 10 * CAPACITY; n++) {
		ring_put(r, CAPACITY, item_of(n));
		enum ring_look look;
		while ((look = ring_get(r, CAPACITY, &reader, &item)) != RING_NONE) {
			if (look == RING_PENDING) {
				ring_skip(&reader);
				continue;
			}
			assert_true(item.b == ~item.a);
			read++;
		}
	}
	assert_int_equal(read + reader.lost, 10 * CAPACITY);
	assert_int_equal(reader.lost, 1);
	free(r);
}

/* Reads all that is there, of which all but one entry are whole. */
static void assert_one_is_lost(const struct ring *r)
{
	struct ring_reader reader = {.next = ring_now(r) - CAPACITY};
	struct ring_item item;
	unsigned read = 0;
	while (ring_get(r, CAPACITY, &reader, &item) == RING_ITEM) {
		assert_true(item.b == ~item.a && item.c == item.a * 3);
		read++;
	}
	assert_int_equal(read, CAPACITY - 1);
	assert_int_equal(reader.lost, 1);
}

/* It writes what was left to write into the entry of another. */
static void what_a_writer_that_goes_on_too_late_has_spoilt_is_lost(void **state)
{
	(void)state;
	for (unsigned word = 0; word < 3; word++) {
		struct ring *r = ring_new();
		begin_one(r);
		for (uint64_t n = 1; n < 2 * CAPACITY; n++)
			ring_put(r, CAPACITY, item_of(n));
		_Atomic uint64_t *late[] = {&r->entries[0].a, &r->entries[0].b, &r->entries[0].c};
		atomic_store(late[word], UINT64_C(7) << (word * 16));
		assert_one_is_lost(r);
		free(r);
	}
}

static void a_reader_of_nonsense_ends(void **state)
{
	(void)state;
	struct ring *r = ring_new();
	struct ring_reader reader = {.next = 100};
	struct ring_item item;
	/* The count went back, as it never does. */
	assert_int_equal(ring_get(r, CAPACITY, &reader, &item), RING_NONE);
	atomic_store(&r->head, UINT64_MAX / 2);
	memset(r->entries, 0xff, CAPACITY * sizeof r->entries[0]);
	while (ring_get(r, CAPACITY, &reader, &item) == RING_PENDING)
		ring_skip(&reader);
	assert_int_equal(reader.next, UINT64_MAX / 2);
	free(r);
}

struct writer {
	struct ring *ring;
	pthread_t thread;
	unsigned count;
};

static void *write_many(void *arg)
{
	struct writer *w = arg;
	for (unsigned i = 0; i < w->count; i++)
		ring_put(w->ring, CAPACITY, item_of(i));
	return NULL;
}

static void what_is_read_among_many_writers_is_whole_and_the_rest_is_counted(void **state)
{
	(void)state;
	struct ring *r = ring_new();
	struct ring_reader reader = {.next = ring_now(r)};
	struct writer writers[3];
	unsigned count = soak_scale(100000, 10000000);
	uint64_t read = 0, torn = 0;
	struct ring_item item;
	for (unsigned i = 0; i < 3; i++) {
		writers[i] = (struct writer){.ring = r, .count = count};
		pthread_create(&writers[i].thread, NULL, write_many, &writers[i]);
	}
	while (reader.next < UINT64_C(3) * count) {
		enum ring_look look = ring_get(r, CAPACITY, &reader, &item);
		if (look == RING_ITEM) {
			read++;
			torn += item.b != ~item.a || item.c != item.a * 3;
		} else if (look == RING_PENDING && (ring_now(r) - reader.next >= CAPACITY ||
		                                    ring_now(r) == UINT64_C(3) * count)) {
			ring_skip(&reader); /* its writer is behind, or has given it up */
		}
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(writers[i].thread, NULL);
	assert_int_equal(torn, 0);
	assert_int_equal(read + reader.lost, UINT64_C(3) * count);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_ring_has_nothing),
		cmocka_unit_test(entries_are_read_in_order_by_each_reader),
		cmocka_unit_test(a_slow_reader_is_told_how_many_it_lost),
		cmocka_unit_test(an_entry_that_is_not_finished_can_be_waited_for_or_skipped),
		cmocka_unit_test(a_dead_writer_costs_one_entry),
		cmocka_unit_test(what_a_writer_that_goes_on_too_late_has_spoilt_is_lost),
		cmocka_unit_test(a_reader_of_nonsense_ends),
		cmocka_unit_test(what_is_read_among_many_writers_is_whole_and_the_rest_is_counted),
	};
	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
