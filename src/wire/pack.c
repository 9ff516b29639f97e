/* The way between protobuf-c and the plain structs of this module. */
#include "wire/pack.h"

#include <string.h>

#include "base/fail.h"
#include "wire/quick.h"

/* What most messages have room in. */
#define ROOM 1024

enum baton_err pack(const ProtobufCMessage *message, struct buf *out)
{
	uint8_t room[ROOM];
	struct baton_str bytes;
	if (quick_write(message, room, sizeof room, &bytes)) {
		buf_append_str(out, bytes);
		/* There may be a token in it. */
		explicit_bzero((void *)bytes.ptr, bytes.len);
		return out->err;
	}
	char *place = buf_extend(out, protobuf_c_message_get_packed_size(message));
	if (place)
		protobuf_c_message_pack(message, (uint8_t *)place);
	return out->err;
}

/* An allocator of protobuf-c that takes from an arena, up to a bound. */
struct purse {
	struct arena *arena;
	size_t left;
	bool refused; /* the bound was reached */
	bool failed;  /* there was no memory   */
};

/* How much a message may take: as much as the oddest one of a fair length needs. */
#define PURSE_MIN (64u << 10)
#define PURSE_FACTOR 64

static void *purse_take(void *arg, size_t size)
{
	struct purse *purse = arg;
	if (size > purse->left) {
		purse->refused = true;
		return NULL;
	}
	purse->left -= size;
	void *place = arena_take(purse->arena, size, 1);
	purse->failed |= place == NULL;
	return place;
}

/* All of it goes with the arena. */
static void purse_give(void *arg, void *place)
{
	(void)arg;
	(void)place;
}

enum baton_err unpack(const ProtobufCMessageDescriptor *type, const char *what,
                      struct baton_str bytes, struct arena *arena, ProtobufCMessage **ret)
{
	struct purse purse = {.arena = arena, .left = PURSE_MIN + PURSE_FACTOR * bytes.len};
	ProtobufCAllocator allocator = {purse_take, purse_give, &purse};
	static const uint8_t nothing[1];
	enum baton_err e = quick_read(type, bytes, arena, ret);
	if (e == BATON_OK)
		return BATON_OK;
	if (e == BATON_NO_MEMORY)
		return fail_memory(bytes.len, what);
	const uint8_t *data = bytes.len > 0 ? (const uint8_t *)bytes.ptr : nothing;
	ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes.len, data);
	if (purse.failed)
		return fail_memory(PURSE_FACTOR * bytes.len, what);
	if (purse.refused)
		return fail(BATON_INVALID, "%s of %zu bytes has too many fields", what, bytes.len);
	if (!message)
		return fail(BATON_INVALID, "%zu bytes that are no %s", bytes.len, what);
	*ret = message;
	return BATON_OK;
}

enum baton_err pack_text(const char *what, ProtobufCBinaryData data, size_t max,
                         struct baton_str *ret)
{
	struct baton_str none = {NULL, 0};
	if (data.len > 0)
		return baton_str_name(what, data.data, data.len, max, ret);
	*ret = none;
	return BATON_OK;
}

enum baton_err pack_bytes(const char *what, ProtobufCBinaryData data, size_t max,
                          struct baton_str *ret)
{
	if (data.len > max)
		return fail(BATON_INVALID, "%s of %zu bytes is too long: %zu are allowed", what,
		            data.len, max);
	*ret = pack_view(data);
	return BATON_OK;
}
