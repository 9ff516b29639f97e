/* What is read in one pass is what protobuf-c reads, and is written as protobuf-c writes it. The
 * first byte says as which message the others are read. */
#include <stdlib.h>
#include <string.h>

#include <baton/alloc.h>

#include "fuzz/fuzz.h"
#include "wire/quick.h"
#include "wire/wire.pb-c.h"

static const ProtobufCMessageDescriptor *const types[] = {
	&baton__wire__envelope__descriptor, &baton__wire__hello__descriptor,
	&baton__wire__reply__descriptor,    &baton__wire__handoff__descriptor,
	&baton__wire__admin__descriptor,
};

/* In memory of the caller's to be freed. */
static struct baton_str packed(const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	char *bytes = malloc(len + 1);
	CHECK(bytes);
	protobuf_c_message_pack(message, (uint8_t *)bytes);
	return (struct baton_str){bytes, len};
}

static void written_check(const ProtobufCMessage *message)
{
	struct baton_str theirs = packed(message);
	struct baton_str ours;
	uint8_t *room = malloc(theirs.len + 1);
	CHECK(room);
	if (quick_write(message, room, theirs.len, &ours))
		CHECK(baton_str_equal(ours, theirs));
	free(room);
	free((char *)theirs.ptr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	ProtobufCMessage *ours;
	if (size == 0)
		return 0;
	const ProtobufCMessageDescriptor *type = types[data[0] % (sizeof types / sizeof *types)];
	struct baton_str bytes = {(const char *)data + 1, size - 1};
	arena_init(&arena, baton_alloc_libc());
	ProtobufCMessage *theirs = protobuf_c_message_unpack(type, NULL, size - 1, data + 1);
	if (theirs)
		written_check(theirs);
	if (quick_read(type, bytes, &arena, &ours) == BATON_OK) {
		CHECK(theirs);
		struct baton_str a = packed(ours), b = packed(theirs);
		CHECK(baton_str_equal(a, b));
		free((char *)a.ptr);
		free((char *)b.ptr);
	}
	protobuf_c_message_free_unpacked(theirs, NULL);
	arena_done(&arena);
	return 0;
}
