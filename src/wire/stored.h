/* A descriptor that a broker keeps, as it is told of. */
#ifndef WIRE_STORED_H
#define WIRE_STORED_H

#include <stddef.h>
#include <stdint.h>

#include <baton/str.h>

#define WIRE_STORED_MAX 1024           /* in all             */
#define WIRE_STORED_OF_SERVICE_MAX 128 /* of one service     */
#define WIRE_STORED_NAME_MAX 64

struct wire_stored {
	struct baton_str service; /* may be empty */
	struct baton_str name;
	uint64_t left_ms; /* 0: it is kept until it is taken */
};

#endif
