/* What a broker tells about itself. */
#ifndef WIRE_ADMIN_H
#define WIRE_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "base/buf.h"
#include "wire/stored.h"

#define WIRE_BACKENDS_MAX 8192
#define WIRE_COUNTERS_MAX 64

/* Of a service that the broker starts itself. */
enum wire_service_state {
	WIRE_NOT_STARTED_HERE = 0,
	WIRE_SERVICE_DOWN,
	WIRE_SERVICE_STARTING,
	WIRE_SERVICE_UP,
	WIRE_SERVICE_GIVEN_UP
};

struct wire_backend {
	struct baton_str service;
	uint64_t generation;
	uint32_t pid;
	struct baton_str endpoint;
	struct baton_str owner;
	uint64_t capabilities;
	uint64_t pending;
	uint64_t granted;
	uint64_t failed;
	uint64_t retry_after_ms;
	bool current;
	enum wire_service_state state;
	uint64_t starts;
	uint64_t commands;
};

struct wire_counter {
	struct baton_str name;
	uint64_t value;
};

struct wire_answer {
	struct baton_str daemon_version;
	uint32_t pid;
	const struct wire_backend *backends;
	size_t backends_count;
	const struct wire_counter *counters;
	size_t counters_count;
	uint64_t latency_p50_ns;
	uint64_t latency_p99_ns;
	const struct wire_stored *stored;
	size_t stored_count;
};

enum wire_admin_kind {
	WIRE_ASK = 1,
	WIRE_ANSWER
};

struct wire_admin {
	enum wire_admin_kind kind;
	struct wire_answer answer; /* of WIRE_ANSWER */
};

/* Also takes memory for the time of the call, from `arena`. BATON_FULL: too many of something. */
enum baton_err wire_admin_encode(const struct wire_admin *message, struct arena *arena,
                                 struct buf *out);
enum baton_err wire_admin_decode(struct baton_str bytes, struct arena *arena,
                                 struct wire_admin *ret);

#endif
