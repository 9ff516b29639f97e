/* The names of jobs and claims: what is read is written the same again, and nothing else is read.
 * And whatever the policy of a retry is, its delay is within it. */
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "queue/backoff.h"
#include "queue/batch.h"
#include "queue/policy.h"

static void check_names(const char *text)
{
	struct baton_batch_id id = {""}, again;
	struct claim_name name = {77, 77};
	char written[CLAIM_NAME_TEXT], given[CLAIM_NAME_TEXT] = "";
	uint64_t number = 77;
	snprintf(id.text, sizeof id.text, "%s", text);
	snprintf(given, sizeof given, "%s", text);
	if (batch_id_parse(&id, &number)) {
		batch_id_print(number, &again);
		CHECK(strcmp(again.text, id.text) == 0);
	} else {
		CHECK(number == 77);
	}
	if (claim_name_parse(given, &name)) {
		claim_name_print(&name, written);
		CHECK(strcmp(written, given) == 0);
	} else {
		CHECK(name.head == 77 && name.fence == 77);
	}
}

static void check_numbers(uint64_t a, uint64_t b)
{
	struct baton_batch_id id;
	struct claim_name name = {a, b}, read = {0, 0};
	char text[CLAIM_NAME_TEXT];
	uint64_t number = 0;
	batch_id_print(a, &id);
	CHECK(a == 0 || (batch_id_parse(&id, &number) && number == a));
	claim_name_print(&name, text);
	CHECK(a == 0 || b == 0 ||
	      (claim_name_parse(text, &read) && read.head == a && read.fence == b));
}

static void check_delay(uint64_t a, uint64_t b, uint8_t kind)
{
	const struct baton_retry retry = {
		.attempts = 1 + (uint32_t)(a % BATON_QUEUE_ATTEMPTS_MAX),
		.backoff = (enum baton_backoff)(kind % 4),
		.base = {(int64_t)(a >> 1)},
		.cap = {(int64_t)(b >> 1)},
	};
	if (baton_retry_check(&retry) != BATON_OK)
		return;
	struct baton_duration d = backoff_delay(&retry, (uint32_t)b | 1, a ^ b << 7);
	CHECK(d.ns >= 0);
	CHECK(d.ns <= retry.cap.ns || retry.backoff != BATON_BACKOFF_EXPONENTIAL);
	CHECK(d.ns == 0 || retry.backoff != BATON_BACKOFF_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[64];
	uint64_t numbers[2];
	size_t len = size < sizeof text - 1 ? size : sizeof text - 1;
	if (len > 0)
		memcpy(text, data, len);
	text[len] = '\0';
	check_names(text);
	if (size < sizeof numbers + 1)
		return 0;
	memcpy(numbers, data, sizeof numbers);
	check_numbers(numbers[0] >> 11, numbers[1] >> 11); /* 53 bits, as all names */
	check_delay(numbers[0] % 200000000000000, numbers[1] % 200000000000000,
	            data[sizeof numbers]);
	return 0;
}
