/* What is written and read in one pass, against protobuf-c. */
#include <string.h>

#include "support/fault.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"
#include "wire/quick.h"
#include "wire/wire.pb-c.h"

#define ROUNDS 20000u
#define ROOM 4096

static const ProtobufCMessageDescriptor *const types[] = {
	&baton__wire__envelope__descriptor, &baton__wire__hello__descriptor,
	&baton__wire__reply__descriptor,    &baton__wire__handoff__descriptor,
	&baton__wire__offer__descriptor,    &baton__wire__admin__descriptor,
};

struct world {
	struct fault fault;
	struct arena arena;
	struct rng rng;
	uint8_t bytes[ROOM], ours[ROOM], theirs[ROOM];
	size_t len;
	unsigned read, written;
};

static int setup(void **state)
{
	static struct world w;
	w = (struct world){.read = 0};
	fault_init(&w.fault);
	arena_init(&w.arena, &w.fault.alloc);
	w.rng = rng_seed_from_env();
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	arena_done(&w->arena);
	fault_done(&w->fault);
	return 0;
}

static void byte_add(struct world *w, uint64_t byte)
{
	if (w->len < ROOM / 4)
		w->bytes[w->len++] = (uint8_t)byte;
}

/* Something that is often a field of the message, and often one that is odd. */
static void fields_make(struct world *w, const ProtobufCMessageDescriptor *type, unsigned depth)
{
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		bool odd = rng_below(&w->rng, 40) == 0;
		uint64_t id = odd ? rng_below(&w->rng, 30) : f->id;
		if (rng_below(&w->rng, 2) == 0)
			continue;
		bool number =
			f->type != PROTOBUF_C_TYPE_BYTES && f->type != PROTOBUF_C_TYPE_MESSAGE;
		uint64_t head = id << 3 | (number ? 0u : 2u);
		if (head >= 0x80)
			byte_add(w, (head & 0x7f) | 0x80);
		byte_add(w, head >= 0x80 ? head >> 7 : head);
		if (number) {
			for (uint64_t n = rng_below(&w->rng, odd ? 12 : 6); n > 0; n--)
				byte_add(w, rng_below(&w->rng, 256) | 0x80);
			byte_add(w, rng_below(&w->rng, 128));
			continue;
		}
		size_t at = w->len;
		byte_add(w, 0);
		if (f->type == PROTOBUF_C_TYPE_MESSAGE && depth < 3)
			fields_make(w, f->descriptor, depth + 1);
		else
			for (uint64_t n = rng_below(&w->rng, 9); n > 0; n--)
				byte_add(w, rng_below(&w->rng, 256));
		size_t len = w->len > at ? w->len - at - 1 : 0;
		if (at < w->len)
			w->bytes[at] = (uint8_t)(len < 0x80 ? len : 0x7f);
	}
}

/* What is written of it must be what protobuf-c writes. */
static void assert_written(struct world *w, const ProtobufCMessage *message)
{
	struct baton_str bytes;
	size_t len = protobuf_c_message_get_packed_size(message);
	assert_true(len <= ROOM);
	protobuf_c_message_pack(message, w->theirs);
	if (!quick_write(message, w->ours, ROOM, &bytes))
		return;
	assert_int_equal(bytes.len, len);
	assert_memory_equal(bytes.ptr, w->theirs, len);
	w->written++;
}

static void bytes_try(struct world *w, const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage *ours;
	const struct baton_str bytes = {(const char *)w->bytes, w->len};
	arena_reset(&w->arena);
	bool read = quick_read(type, bytes, &w->arena, &ours) == BATON_OK;
	ProtobufCMessage *theirs = protobuf_c_message_unpack(type, NULL, w->len, w->bytes);
	if (theirs)
		assert_written(w, theirs);
	if (read) {
		assert_non_null(theirs);
		size_t len = protobuf_c_message_get_packed_size(ours);
		assert_true(len <= ROOM);
		protobuf_c_message_pack(ours, w->ours);
		assert_int_equal(protobuf_c_message_pack(theirs, w->theirs), len);
		assert_memory_equal(w->ours, w->theirs, len);
		assert_int_equal(theirs->n_unknown_fields, 0);
		w->read++;
	}
	protobuf_c_message_free_unpacked(theirs, NULL);
}

static void what_is_read_and_written_is_what_protobuf_c_reads_and_writes(void **state)
{
	struct world *w = *state;
	unsigned rounds = soak_scale(ROUNDS, 100 * ROUNDS);
	for (unsigned i = 0; i < rounds; i++) {
		const ProtobufCMessageDescriptor *type = types[i % (sizeof types / sizeof *types)];
		w->len = 0;
		fields_make(w, type, 0);
		if (w->len > 0 && rng_below(&w->rng, 4) == 0)
			w->bytes[rng_below(&w->rng, w->len)] = (uint8_t)rng_below(&w->rng, 256);
		bytes_try(w, type);
	}
	/* It is of no use if it is always left to protobuf-c. */
	assert_true(w->read > rounds / 10);
	assert_true(w->written > rounds / 10);
}

static void what_does_not_fit_is_not_written(void **state)
{
	struct world *w = *state;
	struct baton_str bytes;
	uint8_t data[32] = {1};
	Baton__Wire__Handoff message = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Grant grant = BATON__WIRE__GRANT__INIT;
	grant.token = (ProtobufCBinaryData){sizeof data, data};
	grant.correlation = 1u << 20;
	message.is_case = BATON__WIRE__HANDOFF__IS_GRANT;
	message.grant = &grant;
	size_t len = protobuf_c_message_get_packed_size(&message.base);
	for (size_t room = 0; room < len; room++)
		assert_false(quick_write(&message.base, w->ours, room, &bytes));
	assert_true(quick_write(&message.base, w->ours, len, &bytes));
	assert_ptr_equal(bytes.ptr, w->ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(what_is_read_and_written_is_what_protobuf_c_reads_and_writes),
		TEST(what_does_not_fit_is_not_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
