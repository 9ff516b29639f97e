/* Messages of protobuf-c in one pass. */
#include "wire/quick.h"

#include <string.h>

#define TYPE_VARINT 0u
#define TYPE_BYTES 2u
#define VARINT_MAX 10
/* One more may have bits that are no number's. */
#define VARINT_FAIR 9

/* Those that no message has. */
#define OTHER_TYPES                    \
	case PROTOBUF_C_TYPE_INT32:    \
	case PROTOBUF_C_TYPE_SINT32:   \
	case PROTOBUF_C_TYPE_SFIXED32: \
	case PROTOBUF_C_TYPE_INT64:    \
	case PROTOBUF_C_TYPE_SINT64:   \
	case PROTOBUF_C_TYPE_SFIXED64: \
	case PROTOBUF_C_TYPE_FIXED32:  \
	case PROTOBUF_C_TYPE_FIXED64:  \
	case PROTOBUF_C_TYPE_FLOAT:    \
	case PROTOBUF_C_TYPE_DOUBLE:   \
	case PROTOBUF_C_TYPE_STRING

/* What is written grows towards the front: so the length of a message is known when it is due. */
struct writer {
	uint8_t *front;
	size_t left;
};

static bool bytes_put(struct writer *w, const void *bytes, size_t len)
{
	if (len > w->left)
		return false;
	w->left -= len;
	w->front -= len;
	memcpy(w->front, bytes, len);
	return true;
}

static bool varint_put(struct writer *w, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];
	size_t len = 0;
	if (value < 0x80 && w->left > 0) { /* nearly always */
		w->left--;
		*--w->front = (uint8_t)value;
		return true;
	}
	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (uint8_t)(value | 0x80);
	bytes[len++] = (uint8_t)value;
	return bytes_put(w, bytes, len);
}

static bool head_put(struct writer *w, const ProtobufCFieldDescriptor *field, unsigned type)
{
	return varint_put(w, (uint64_t)field->id << 3 | type);
}

static const void *member(const ProtobufCMessage *message, size_t offset)
{
	return (const char *)message + offset;
}

static bool message_put(struct writer *w, const ProtobufCMessage *message);

static bool sub_put(struct writer *w, const ProtobufCFieldDescriptor *field,
                    const ProtobufCMessage *sub)
{
	size_t before = w->left;
	return !sub || (message_put(w, sub) && varint_put(w, before - w->left) &&
	                head_put(w, field, TYPE_BYTES));
}

static bool data_put(struct writer *w, const ProtobufCFieldDescriptor *field,
                     const ProtobufCBinaryData *data)
{
	return data->len == 0 || (bytes_put(w, data->data, data->len) && varint_put(w, data->len) &&
	                          head_put(w, field, TYPE_BYTES));
}

static bool number_put(struct writer *w, const ProtobufCFieldDescriptor *field, uint64_t value)
{
	return value == 0 || (varint_put(w, value) && head_put(w, field, TYPE_VARINT));
}

/* Whether a field of a oneof is another one than that which is there. */
static bool is_other(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
	       *(const uint32_t *)member(message, field->quantifier_offset) != field->id;
}

/* Whether a field that may be repeated is not there at all. */
static bool is_empty(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	return field->label == PROTOBUF_C_LABEL_REPEATED &&
	       *(const size_t *)member(message, field->quantifier_offset) == 0;
}

static bool field_put(struct writer *w, const ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field)
{
	const void *at = member(message, field->offset);
	if (field->label != PROTOBUF_C_LABEL_NONE)
		return is_empty(message, field);
	if (is_other(message, field))
		return true;
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		return sub_put(w, field, *(const ProtobufCMessage *const *)at);
	case PROTOBUF_C_TYPE_BYTES:
		return data_put(w, field, at);
	case PROTOBUF_C_TYPE_UINT32:
		return number_put(w, field, *(const uint32_t *)at);
	case PROTOBUF_C_TYPE_UINT64:
		return number_put(w, field, *(const uint64_t *)at);
	case PROTOBUF_C_TYPE_BOOL:
		return number_put(w, field, *(const protobuf_c_boolean *)at != 0);
	case PROTOBUF_C_TYPE_ENUM:
		return number_put(w, field, (uint64_t) * (const int32_t *)at);
	OTHER_TYPES:
		break;
	}
	return false;
}

/* They are in the order of their numbers. */
static bool message_put(struct writer *w, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	if (message->n_unknown_fields > 0)
		return false;
	for (unsigned i = type->n_fields; i > 0; i--)
		if (!field_put(w, message, &type->fields[i - 1]))
			return false;
	return true;
}

bool quick_write(const ProtobufCMessage *message, uint8_t *room, size_t size, struct baton_str *ret)
{
	struct writer w = {room + size, size};
	if (!message_put(&w, message))
		return false;
	*ret = (struct baton_str){(const char *)w.front, size - w.left};
	return true;
}

struct reader {
	const uint8_t *at, *end;
	struct arena *arena;
	bool failed; /* there was no memory */
};

static bool varint_get(struct reader *r, uint64_t *ret)
{
	uint64_t value = 0;
	if (r->at < r->end && *r->at < 0x80) { /* nearly always */
		*ret = *r->at++;
		return true;
	}
	for (unsigned i = 0; i < VARINT_FAIR && r->at < r->end; i++) {
		uint8_t byte = *r->at++;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			*ret = value;
			return byte > 0; /* else it could be shorter */
		}
	}
	return false;
}

static ProtobufCMessage *message_get(const ProtobufCMessageDescriptor *type, struct reader *r);

static bool sub_get(struct reader *r, const ProtobufCFieldDescriptor *field, size_t len,
                    ProtobufCMessage **ret)
{
	struct reader inner = {.at = r->at, .end = r->at + len, .arena = r->arena};
	r->at += len;
	*ret = message_get(field->descriptor, &inner);
	r->failed = inner.failed;
	return *ret != NULL;
}

static bool bytes_get(struct reader *r, const ProtobufCFieldDescriptor *field, void *place)
{
	uint64_t len;
	if (!varint_get(r, &len) || len > (uint64_t)(r->end - r->at))
		return false;
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return sub_get(r, field, (size_t)len, place);
	if (field->type != PROTOBUF_C_TYPE_BYTES)
		return false;
	*(ProtobufCBinaryData *)place =
		(ProtobufCBinaryData){(size_t)len, len > 0 ? (uint8_t *)r->at : NULL};
	r->at += len;
	return true;
}

static bool number_get(struct reader *r, const ProtobufCFieldDescriptor *field, void *place)
{
	uint64_t value;
	if (!varint_get(r, &value))
		return false;
	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT32:
		*(uint32_t *)place = (uint32_t)value;
		return true;
	case PROTOBUF_C_TYPE_UINT64:
		*(uint64_t *)place = value;
		return true;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)place = value != 0;
		return true;
	case PROTOBUF_C_TYPE_ENUM:
		*(int32_t *)place = (int32_t)value;
		return true;
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_BYTES:
	OTHER_TYPES:
		break;
	}
	return false;
}

/* Sets which field of a oneof is there; false: there is one already. */
static bool case_set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
		return true;
	uint32_t *which = (uint32_t *)((char *)message + field->quantifier_offset);
	bool first = *which == 0;
	*which = field->id;
	return first;
}

static bool field_get(struct reader *r, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, unsigned type)
{
	void *place = (char *)message + field->offset;
	if (field->label != PROTOBUF_C_LABEL_NONE || !case_set(message, field))
		return false;
	if (type == TYPE_VARINT)
		return number_get(r, field, place);
	return type == TYPE_BYTES && bytes_get(r, field, place);
}

static ProtobufCMessage *message_get(const ProtobufCMessageDescriptor *type, struct reader *r)
{
	unsigned next = 0; /* of the fields; a message may have none */
	ProtobufCMessage *message = arena_take_raw(r->arena, type->sizeof_message, 1);
	if (!message) {
		r->failed = true;
		return NULL;
	}
	type->message_init(message);
	while (r->at < r->end) {
		uint64_t head;
		if (!varint_get(r, &head))
			return NULL;
		while (next < type->n_fields && type->fields[next].id < head >> 3)
			next++;
		if (next == type->n_fields || type->fields[next].id != head >> 3 ||
		    !field_get(r, message, &type->fields[next++], (unsigned)(head & 7)))
			return NULL;
	}
	return message;
}

enum baton_err quick_read(const ProtobufCMessageDescriptor *type, struct baton_str bytes,
                          struct arena *arena, ProtobufCMessage **ret)
{
	uint8_t *copy = arena_take_raw(arena, bytes.len + 1, 1);
	if (!copy)
		return BATON_NO_MEMORY;
	if (bytes.len > 0)
		memcpy(copy, bytes.ptr, bytes.len);
	struct reader r = {.at = copy, .end = copy + bytes.len, .arena = arena};
	ProtobufCMessage *message = message_get(type, &r);
	if (!message)
		return r.failed ? BATON_NO_MEMORY : BATON_INVALID;
	*ret = message;
	return BATON_OK;
}
