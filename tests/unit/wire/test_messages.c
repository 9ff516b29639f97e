/* Messages against bytes that were written down by hand, after the tables of the protocol. */
#include <stdio.h>
#include <string.h>

#include "support/fault.h"
#include "support/harness.h"
#include "wire/admin.h"
#include "wire/envelope.h"
#include "wire/handoff.h"
#include "wire/hello.h"

#define TOKEN "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20"
#define TOKEN_HEX "0102030405060708090a0b0c0d0e0f10"
#define SMALL_HEX "080110011a0463686174"

struct world {
	struct fault fault;
	struct arena arena;
	struct buf out;
	uint8_t bytes[1024];
};

static int setup(void **state)
{
	static struct world w;
	fault_init(&w.fault);
	arena_init(&w.arena, &w.fault.alloc);
	buf_init(&w.out, &w.fault.alloc, 1 << 20);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	arena_done(&w->arena);
	buf_done(&w->out);
	fault_done(&w->fault);
	return 0;
}

/* The bytes of a text of hexadecimal digits. */
static struct baton_str bytes_of(struct world *w, const char *hex)
{
	size_t len = strlen(hex) / 2;
	assert_true(len <= sizeof w->bytes);
	for (size_t i = 0; i < len; i++) {
		unsigned byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		w->bytes[i] = (uint8_t)byte;
	}
	return (struct baton_str){(const char *)w->bytes, len};
}

static void assert_written(struct world *w, const char *hex)
{
	struct baton_str want = bytes_of(w, hex);
	assert_int_equal(w->out.err, BATON_OK);
	assert_int_equal(w->out.len, want.len);
	assert_memory_equal(w->out.data, want.ptr, want.len);
	buf_reset(&w->out);
}

#define assert_str(got, text) assert_true(baton_str_equal(got, BATON_STR(text)))

static const struct wire_hello small_hello = {.min_protocol = 1,
                                              .max_protocol = 1,
                                              .service = {"chat", 4}};

static void an_envelope_and_its_frame(void **state)
{
	struct world *w = *state;
	const char *hex = "0801100118ffa1032203706179280938e807420430302d614a036b3d76";
	const struct wire_envelope e = {
		.kind = WIRE_RESPONSE,
		.protocol = WIRE_HANDOFF,
		.payload = BATON_STR("pay"),
		.request_id = 9,
		.trace = {1000, BATON_STR("00-a"), BATON_STR("k=v")},
	};
	struct wire_envelope got;
	wire_envelope_encode(&e, &w->out);
	assert_written(w, hex);
	assert_int_equal(wire_envelope_decode(bytes_of(w, hex), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_RESPONSE);
	assert_int_equal(got.protocol, WIRE_HANDOFF);
	assert_str(got.payload, "pay");
	assert_int_equal(got.request_id, 9);
	assert_int_equal(got.trace.deadline, 1000);
	assert_str(got.trace.traceparent, "00-a");
	assert_str(got.trace.tracestate, "k=v");

	const struct wire_envelope probe = {.protocol = WIRE_PROBE};
	wire_frame_encode(&probe, &w->out);
	assert_written(w, "0106000000080118b2e402");
}

static void a_hello(void **state)
{
	struct world *w = *state;
	const char *hex = "080110031a04636861742201322a03312e3030053a02007340ac02480750e7245a08"
			  "6c69626261746f6e6203302e31781eaa01046d61696cb20103616461";
	const struct wire_hello h = {
		.min_protocol = 1,
		.max_protocol = 3,
		.service = BATON_STR("chat"),
		.wanted_version = BATON_STR("2"),
		.client_version = BATON_STR("1.0"),
		.capabilities = WIRE_ACCEPTS_HANDOFF | WIRE_WANTS_WELCOME,
		.auth_token = BATON_STR("\0s"),
		.request_id = 300,
		.connection_id = 7,
		.pid = 4711,
		.library_name = BATON_STR("libbaton"),
		.library_version = BATON_STR("0.1"),
		.keepalive_secs = 30,
		.queue = BATON_STR("mail"),
		.lane = BATON_STR("ada"),
	};
	struct wire_hello got;
	wire_hello_encode(&h, &w->out);
	assert_written(w, hex);
	assert_int_equal(wire_hello_decode(bytes_of(w, hex), &w->arena, &got), BATON_OK);
	assert_int_equal(got.min_protocol, 1);
	assert_int_equal(got.max_protocol, 3);
	assert_str(got.service, "chat");
	assert_str(got.wanted_version, "2");
	assert_str(got.client_version, "1.0");
	assert_int_equal(got.capabilities, 5);
	assert_str(got.auth_token, "\0s");
	assert_int_equal(got.request_id, 300);
	assert_int_equal(got.connection_id, 7);
	assert_int_equal(got.pid, 4711);
	assert_str(got.library_name, "libbaton");
	assert_str(got.library_version, "0.1");
	assert_int_equal(got.keepalive_secs, 30);
	assert_str(got.queue, "mail");
	assert_str(got.lane, "ada");
}

static void both_replies(void **state)
{
	struct world *w = *state;
	const char *yes = "0a3408011205302e312e301a062f72756e2f7822036f6c642204736c6f772801300f"
			  "3a10" TOKEN_HEX "4007";
	const char *no = "12120a026e6f10011802200a2a0377687930fa01";
	const struct baton_str warnings[] = {BATON_STR("old"), BATON_STR("slow")};
	const struct wire_reply negotiated = {
		.kind = WIRE_NEGOTIATED,
		.negotiated =
			{
				.protocol = 1,
				.daemon_version = BATON_STR("0.1.0"),
				.backend_pipe = BATON_STR("/run/x"),
				.warnings = warnings,
				.warnings_count = 2,
				.capabilities = WIRE_IS_HANDOFF,
				.keepalive_secs = 15,
				.token = BATON_STR(TOKEN),
				.connection_id = 7,
			},
	};
	const struct wire_reply refused = {
		.kind = WIRE_REFUSED,
		.refused = {BATON_STR("no"), 1, 2, WIRE_LANE_ELSEWHERE, BATON_STR("why"), 250},
	};
	struct wire_reply got;
	wire_reply_encode(&negotiated, &w->out);
	assert_written(w, yes);
	wire_reply_encode(&refused, &w->out);
	assert_written(w, no);

	assert_int_equal(wire_reply_decode(bytes_of(w, yes), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_NEGOTIATED);
	assert_int_equal(got.negotiated.protocol, 1);
	assert_str(got.negotiated.daemon_version, "0.1.0");
	assert_str(got.negotiated.backend_pipe, "/run/x");
	assert_int_equal(got.negotiated.warnings_count, 2);
	assert_str(got.negotiated.warnings[1], "slow");
	assert_int_equal(got.negotiated.capabilities, 1);
	assert_int_equal(got.negotiated.keepalive_secs, 15);
	assert_str(got.negotiated.token, TOKEN);
	assert_int_equal(got.negotiated.connection_id, 7);

	assert_int_equal(wire_reply_decode(bytes_of(w, no), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_REFUSED);
	assert_str(got.refused.reason, "no");
	assert_int_equal(got.refused.min_protocol, 1);
	assert_int_equal(got.refused.max_protocol, 2);
	assert_int_equal(got.refused.code, WIRE_LANE_ELSEWHERE);
	assert_str(got.refused.details, "why");
	assert_int_equal(got.refused.retry_after_ms, 250);

	assert_int_equal(wire_reply_decode(bytes_of(w, "1202200b"), &w->arena, &got), BATON_OK);
	assert_int_equal(got.refused.code, WIRE_INTERNAL);
}

static void decode(struct world *w, const char *hex, enum wire_handoff_kind kind,
                   struct wire_handoff *ret)
{
	assert_int_equal(wire_handoff_decode(bytes_of(w, hex), &w->arena, ret), BATON_OK);
	assert_int_equal(ret->kind, kind);
}

static void an_offer_with_or_without_its_handle(void **state)
{
	struct world *w = *state;
#define OFFER_REST                                                               \
	"1210" TOKEN_HEX "1a046368617420095a0a" SMALL_HEX "6207080c10e807186468" \
	"80e497d0127007"
	const struct wire_handoff m = {
		.kind = WIRE_OFFER,
		.is.offer = {BATON_STR(TOKEN),
	                     BATON_STR("chat"),
	                     9,
	                     small_hello,
	                     {12, 1000, 100},
	                     5000000000,
	                     7,
	                     {0, {NULL, 0}, {NULL, 0}}},
	};
	static const char *const forms[] = {"0a37" OFFER_REST, "0a390800" OFFER_REST};
	wire_handoff_encode(&m, &w->out);
	assert_written(w, forms[0]);
	for (int i = 0; i < 2; i++) {
		struct wire_handoff got;
		decode(w, forms[i], WIRE_OFFER, &got);
		assert_str(got.is.offer.token, TOKEN);
		assert_str(got.is.offer.service, "chat");
		assert_int_equal(got.is.offer.correlation, 9);
		assert_str(got.is.offer.hello.service, "chat");
		assert_int_equal(got.is.offer.credentials.pid, 12);
		assert_int_equal(got.is.offer.credentials.uid, 1000);
		assert_int_equal(got.is.offer.credentials.gid, 100);
		assert_int_equal(got.is.offer.deadline, 5000000000);
		assert_int_equal(got.is.offer.word, 7);
	}
}

static void an_ack_and_a_grant(void **state)
{
	struct world *w = *state;
	const char *ack_hex = "121a0a10" TOKEN_HEX "10011a026f6b2009";
	const char *grant_hex = "1a140a10" TOKEN_HEX "1009";
	const struct wire_handoff ack = {.kind = WIRE_ACK,
	                                 .is.ack = {BATON_STR(TOKEN), true, BATON_STR("ok"), 9}};
	const struct wire_handoff grant = {.kind = WIRE_GRANT, .is.grant = {BATON_STR(TOKEN), 9}};
	struct wire_handoff got;
	wire_handoff_encode(&ack, &w->out);
	assert_written(w, ack_hex);
	decode(w, ack_hex, WIRE_ACK, &got);
	assert_str(got.is.ack.token, TOKEN);
	assert_true(got.is.ack.accepted);
	assert_str(got.is.ack.detail, "ok");
	assert_int_equal(got.is.ack.correlation, 9);

	wire_handoff_encode(&grant, &w->out);
	assert_written(w, grant_hex);
	decode(w, grant_hex, WIRE_GRANT, &got);
	assert_str(got.is.grant.token, TOKEN);
	assert_int_equal(got.is.grant.correlation, 9);
}

static void a_registration_and_what_it_is_answered(void **state)
{
	struct world *w = *state;
	const char *ask = "22190a046368617410031a062f72756e2f7922057765622d312803";
	/* With a field that once was for queues. */
	const char *old = "22250a046368617410031a062f72756e2f7922057765622d31280332046d61696c"
			  "320470757368";
	const char *answer = "2a110801120466696e6518022205302e312e30";
	const struct wire_handoff m = {
		.kind = WIRE_REGISTER,
		.is.registration = {BATON_STR("chat"), 3, BATON_STR("/run/y"), BATON_STR("web-1"),
	                            3},
	};
	const struct wire_handoff r = {
		.kind = WIRE_REGISTERED,
		.is.registered = {true, BATON_STR("fine"), 2, BATON_STR("0.1.0")},
	};
	struct wire_handoff got;
	wire_handoff_encode(&m, &w->out);
	assert_written(w, ask);
	decode(w, ask, WIRE_REGISTER, &got);
	assert_str(got.is.registration.service, "chat");
	assert_int_equal(got.is.registration.generation, 3);
	assert_str(got.is.registration.endpoint, "/run/y");
	assert_str(got.is.registration.owner, "web-1");
	assert_int_equal(got.is.registration.capabilities, 3);
	decode(w, old, WIRE_REGISTER, &got);
	assert_str(got.is.registration.owner, "web-1");

	wire_handoff_encode(&r, &w->out);
	assert_written(w, answer);
	decode(w, answer, WIRE_REGISTERED, &got);
	assert_true(got.is.registered.accepted);
	assert_str(got.is.registered.detail, "fine");
	assert_int_equal(got.is.registered.backend, 2);
	assert_str(got.is.registered.daemon_version, "0.1.0");
}

static void what_is_kept(void **state)
{
	static const char keep_hex[] = "3a0e0801120468747470188c0a20ff01";
	static const char kept_hex[] = "420f080118072209120468747470188c0a";
	struct world *w = *state;
	const struct wire_handoff keep = {
		.kind = WIRE_KEEP,
		.is.keep = {WIRE_PUT, BATON_STR("http"), 1292, 255},
	};
	const struct wire_stored stored = {{NULL, 0}, BATON_STR("http"), 1292};
	const struct wire_handoff kept = {
		.kind = WIRE_KEPT,
		.is.kept = {WIRE_KEPT_DONE, {NULL, 0}, 7, &stored, 1},
	};
	struct wire_handoff got;
	wire_handoff_encode(&keep, &w->out);
	assert_written(w, keep_hex);
	assert_int_equal(wire_handoff_decode(bytes_of(w, keep_hex), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_KEEP);
	assert_int_equal(got.is.keep.verb, WIRE_PUT);
	assert_str(got.is.keep.name, "http");
	assert_int_equal(got.is.keep.ttl_ms, 1292);
	assert_int_equal(got.is.keep.correlation, 255);

	wire_handoff_encode(&kept, &w->out);
	assert_written(w, kept_hex);
	assert_int_equal(wire_handoff_decode(bytes_of(w, kept_hex), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_KEPT);
	assert_int_equal(got.is.kept.result, WIRE_KEPT_DONE);
	assert_int_equal(got.is.kept.correlation, 7);
	assert_int_equal(got.is.kept.stored_count, 1);
	assert_str(got.is.kept.stored[0].name, "http");
	assert_int_equal(got.is.kept.stored[0].left_ms, 1292);
}

static void what_a_broker_hands_on(void **state)
{
	static const char hex[] =
		"4a1e080210032218080c12046563686f2a03616263380740015805620305ff01";
	struct world *w = *state;
	static const uint64_t numbers[] = {5, 255};
	const struct wire_item item = {
		.kind = WIRE_ITEM_PEER,
		.service = BATON_STR("echo"),
		.bytes = BATON_STR("abc"),
		.id = 7,
		.generation = 1,
		.until = 5,
		.numbers = numbers,
		.numbers_count = 2,
	};
	const struct wire_handoff m = {
		.kind = WIRE_MOVE,
		.is.move = {WIRE_MOVE_PORTION, 3, {NULL, 0}, &item, 1},
	};
	struct wire_handoff got;
	wire_handoff_encode(&m, &w->out);
	assert_written(w, hex);
	assert_int_equal(wire_handoff_decode(bytes_of(w, hex), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_MOVE);
	assert_int_equal(got.is.move.step, WIRE_MOVE_PORTION);
	assert_int_equal(got.is.move.number, 3);
	assert_int_equal(got.is.move.items_count, 1);
	assert_int_equal(got.is.move.items[0].kind, WIRE_ITEM_PEER);
	assert_str(got.is.move.items[0].service, "echo");
	assert_str(got.is.move.items[0].bytes, "abc");
	assert_int_equal(got.is.move.items[0].numbers_count, 2);
	assert_int_equal(got.is.move.items[0].numbers[1], 255);
}

static void a_welcome(void **state)
{
	struct world *w = *state;
	const struct wire_handoff m = {.kind = WIRE_WELCOME, .is.welcome = {7}};
	struct wire_handoff got;
	wire_handoff_encode(&m, &w->out);
	assert_written(w, "32020807");
	decode(w, "32020807", WIRE_WELCOME, &got);
	assert_int_equal(got.is.welcome.connection_id, 7);
}

static void a_question_to_a_broker_and_its_answer(void **state)
{
	struct world *w = *state;
	const char *hex = "12430a05302e312e3010631a250a04636861741003180c22062f72756e2f792a0577"
			  "65622d31300338014002480450055801220b0a076772616e746564100828e80730d0"
			  "0f";
	const struct wire_backend b = {BATON_STR("chat"),
	                               3,
	                               12,
	                               BATON_STR("/run/y"),
	                               BATON_STR("web-1"),
	                               3,
	                               1,
	                               2,
	                               4,
	                               5,
	                               true,
	                               WIRE_NOT_STARTED_HERE,
	                               0,
	                               0};
	const struct wire_counter c = {BATON_STR("granted"), 8};
	const struct wire_admin ask = {.kind = WIRE_ASK};
	const struct wire_admin answer = {.kind = WIRE_ANSWER,
	                                  .answer = {BATON_STR("0.1.0"), 99, &b, 1, &c, 1, 1000,
	                                             2000, NULL, 0}};
	struct wire_admin got;
	wire_admin_encode(&ask, &w->arena, &w->out);
	assert_written(w, "0a00");
	assert_int_equal(wire_admin_decode(bytes_of(w, "0a00"), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_ASK);

	wire_admin_encode(&answer, &w->arena, &w->out);
	assert_written(w, hex);
	assert_int_equal(wire_admin_decode(bytes_of(w, hex), &w->arena, &got), BATON_OK);
	assert_int_equal(got.kind, WIRE_ANSWER);
	assert_str(got.answer.daemon_version, "0.1.0");
	assert_int_equal(got.answer.pid, 99);
	assert_int_equal(got.answer.backends_count, 1);
	assert_str(got.answer.backends[0].owner, "web-1");
	assert_int_equal(got.answer.backends[0].failed, 4);
	assert_true(got.answer.backends[0].current);
	assert_int_equal(got.answer.counters_count, 1);
	assert_str(got.answer.counters[0].name, "granted");
	assert_int_equal(got.answer.counters[0].value, 8);
	assert_int_equal(got.answer.latency_p50_ns, 1000);
	assert_int_equal(got.answer.latency_p99_ns, 2000);
}

static enum baton_err envelope_try(struct baton_str bytes, struct arena *arena)
{
	struct wire_envelope got;
	return wire_envelope_decode(bytes, arena, &got);
}

static enum baton_err hello_try(struct baton_str bytes, struct arena *arena)
{
	struct wire_hello got;
	return wire_hello_decode(bytes, arena, &got);
}

static enum baton_err reply_try(struct baton_str bytes, struct arena *arena)
{
	struct wire_reply got;
	return wire_reply_decode(bytes, arena, &got);
}

static enum baton_err handoff_try(struct baton_str bytes, struct arena *arena)
{
	struct wire_handoff got;
	return wire_handoff_decode(bytes, arena, &got);
}

static enum baton_err admin_try(struct baton_str bytes, struct arena *arena)
{
	struct wire_admin got;
	return wire_admin_decode(bytes, arena, &got);
}

static void what_is_wrong_is_refused_with_a_sentence(void **state)
{
	struct world *w = *state;
	static const struct {
		enum baton_err (*decode)(struct baton_str bytes, struct arena *arena);
		const char *hex;
		const char *detail;
	} cases[] = {
		{envelope_try, "", "an envelope of version 0; this is version 1"},
		{envelope_try, "0802", "an envelope of version 2; this is version 1"},
		{envelope_try, "08011004", "an envelope of the unknown kind 4"},
		{envelope_try, "08011801", "an envelope of the unknown protocol 0x1"},
		{envelope_try, "08013001", "a payload in the unknown encoding 1"},
		{envelope_try, "0a0101", "3 bytes that are no envelope"},
		{envelope_try, "08012205", "4 bytes that are no envelope"},
		{hello_try, "", "a Hello that names no service and no lane"},
		{hello_try, "080210011a0161", "a Hello for the protocols 2 to 1"},
		{hello_try, "1a0141",
	         "a Hello for a service whose name is not of 1 to 64 of [a-z0-9-]"},
		{hello_try, "1a0161aa010171", "a Hello with a queue but no lane, or the reverse"},
		{hello_try, "1a0161b2010171", "a Hello with a queue but no lane, or the reverse"},
		{reply_try, "", "a reply that is neither Negotiated nor Refused"},
		{handoff_try, "", "a message about a handoff of an unknown kind"},
		{handoff_try, "0a020801", "an offer with the handle 1"},
		{handoff_try, "0a00", "an offer that does not say who the client is"},
		{handoff_try, "2200",
	         "a backend for a service whose name is not of 1 to 64 of [a-z0-9-]"},
		{handoff_try, "3a00", "the unknown verb 0 about a descriptor"},
		{handoff_try, "3a020805", "the unknown verb 5 about a descriptor"},
		{handoff_try, "4200", "the unknown result 0 about a descriptor"},
		{handoff_try, "42020807", "the unknown result 7 about a descriptor"},
		{handoff_try, "4a00", "the unknown step 0 of an upgrade"},
		{handoff_try, "4a020807", "the unknown step 7 of an upgrade"},
		{handoff_try, "4a0408022200", "an item of the unknown kind 0"},
		{handoff_try, "4a06080222020810", "an item of the unknown kind 16"},
		{handoff_try, "4a0908022205080812015f",
	         "an item of a service whose name is not of 1 to 64 of [a-z0-9-]"},
		{admin_try, "", "a message to a broker of an unknown kind"},
		{admin_try, "12041a026005", "a service in a state 5 that is not known"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_str bytes = bytes_of(w, cases[i].hex);
		assert_int_equal(cases[i].decode(bytes, &w->arena), BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
	}
	/* A NUL, a control character and bytes that are no UTF-8 in a text. */
	assert_int_equal(hello_try(bytes_of(w, "1a03610062"), &w->arena), BATON_INVALID);
	assert_int_equal(hello_try(bytes_of(w, "1a01612a010a"), &w->arena), BATON_INVALID);
	assert_int_equal(hello_try(bytes_of(w, "1a01612a01ff"), &w->arena), BATON_INVALID);
}

static void names_of_services(void **state)
{
	(void)state;
	char longest[WIRE_SERVICE_MAX + 1];
	memset(longest, 'z', sizeof longest);
	assert_true(wire_is_service(BATON_STR("a")));
	assert_true(wire_is_service(BATON_STR("chat-2")));
	assert_true(wire_is_service((struct baton_str){longest, 64}));
	assert_false(wire_is_service((struct baton_str){longest, 65}));
	assert_false(wire_is_service(BATON_STR("")));
	assert_false(wire_is_service(BATON_STR("Chat")));
	assert_false(wire_is_service(BATON_STR("a_b")));
	assert_false(wire_is_service(BATON_STR("../a")));
	assert_false(wire_is_service(BATON_STR("a\0b")));
}

static void fields_that_nobody_knows_are_passed_over(void **state)
{
	struct world *w = *state;
	assert_int_equal(hello_try(bytes_of(w, SMALL_HEX "c0bb0105"), &w->arena), BATON_OK);
}

static void what_is_cut_off_anywhere_is_never_more_than_refused(void **state)
{
	struct world *w = *state;
	const char *hex = "0a390800" OFFER_REST;
	for (size_t len = 0; len < strlen(hex) / 2; len++) {
		struct baton_str whole = bytes_of(w, hex);
		char *copy = test_malloc(len + 1);
		memcpy(copy, whole.ptr, len);
		assert_int_equal(handoff_try((struct baton_str){copy, len}, &w->arena),
		                 BATON_INVALID);
		test_free(copy);
	}
}

static void odd_messages_take_bounded_memory(void **state)
{
	struct world *w = *state;
	static char many[64 << 10];
	/* Backends without any content, each of two bytes: the costliest that there is. */
	for (size_t i = 0; i < sizeof many; i += 2)
		memcpy(many + i, "\x1a\x00", 2);
	char message[8 + sizeof many] = "\x12\x80\x80\x04";
	memcpy(message + 4, many, sizeof many);
	assert_int_equal(admin_try((struct baton_str){message, 4 + sizeof many}, &w->arena),
	                 BATON_INVALID);
	assert_true(fault_live_bytes(&w->fault) < 65 * sizeof many + (2 << 20));
}

static void without_memory_nothing_is_read(void **state)
{
	struct world *w = *state;
	for (unsigned n = 1;; n++) {
		struct arena arena;
		arena_init(&arena, &w->fault.alloc);
		fault_arm(&w->fault, n);
		enum baton_err e = handoff_try(bytes_of(w, "0a37" OFFER_REST), &arena);
		arena_done(&arena);
		if (!fault_fired(&w->fault)) {
			assert_int_equal(e, BATON_OK);
			break;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_envelope_and_its_frame),
		TEST(a_hello),
		TEST(both_replies),
		TEST(an_offer_with_or_without_its_handle),
		TEST(an_ack_and_a_grant),
		TEST(a_registration_and_what_it_is_answered),
		TEST(a_welcome),
		TEST(what_is_kept),
		TEST(what_a_broker_hands_on),
		TEST(a_question_to_a_broker_and_its_answer),
		TEST(what_is_wrong_is_refused_with_a_sentence),
		TEST(names_of_services),
		TEST(fields_that_nobody_knows_are_passed_over),
		TEST(what_is_cut_off_anywhere_is_never_more_than_refused),
		TEST(odd_messages_take_bounded_memory),
		TEST(without_memory_nothing_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
