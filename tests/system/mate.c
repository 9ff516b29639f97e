/* A member of a fleet that does what it is told, for the tests of the program.
 *
 * mate PATH OWNER [SUBJECTS EVENTS] joins, says "joined", and answers each line of its input with
 * one of its own:
 *
 *	try NAMESPACE LABEL TTL_MS     both names in hexadecimal; the fence, or the error's name
 *	wait NAMESPACE LABEL TTL_MS    the same
 *	check, release                 what was got last: the error's name
 *	churn NAMESPACE LABEL COUNT    claims and releases so often; the last fence
 *
 * It leaves at the end of its input. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton.h>

#define LINE_BYTES 4096

struct mate {
	struct baton_fleet *fleet;
	struct baton_claim claim;
};

static int digit(char c)
{
	return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Reads pairs of digits in place. */
static struct baton_str bytes_of(char *hex)
{
	size_t len = strlen(hex) / 2;
	for (size_t i = 0; i < len; i++)
		hex[i] = (char)(16 * digit(hex[2 * i]) + digit(hex[2 * i + 1]));
	return (struct baton_str){hex, len};
}

static void say(enum baton_err e)
{
	puts(baton_err_name(e));
	fflush(stdout);
}

static void say_claim(const struct mate *m, enum baton_err e)
{
	if (e != BATON_OK) {
		say(e);
		return;
	}
	printf("%" PRIu64 "\n", m->claim.fence.v);
	fflush(stdout);
}

static enum baton_err churn(struct mate *m, const struct baton_claim_ask *ask, long count)
{
	enum baton_err e = BATON_OK;
	for (long i = 0; e == BATON_OK && i < count; i++) {
		e = baton_claim_try(m->fleet, ask, &m->claim, NULL);
		if (e == BATON_OK)
			e = baton_claim_release(&m->claim);
	}
	return e;
}

static void obey(struct mate *m, char *line)
{
	char *rest;
	const char *verb = strtok_r(line, " \n", &rest);
	if (!verb)
		return;
	if (strcmp(verb, "check") == 0) {
		say(baton_claim_check(&m->claim, NULL));
		return;
	}
	if (strcmp(verb, "release") == 0) {
		say(baton_claim_release(&m->claim));
		return;
	}
	char *space = strtok_r(NULL, " \n", &rest);
	char *label = strtok_r(NULL, " \n", &rest);
	const char *number = strtok_r(NULL, " \n", &rest);
	if (!space || !label || !number)
		return;
	long value = strtol(number, NULL, 10);
	struct baton_subject subject = {.space = bytes_of(space), .label = bytes_of(label)};
	struct baton_claim_ask ask = {.subject = &subject, .until = BATON_MONO_NEVER};
	if (strcmp(verb, "churn") == 0) {
		say_claim(m, churn(m, &ask, value));
		return;
	}
	ask.ttl = baton_duration_ms(value);
	if (strcmp(verb, "wait") == 0)
		say_claim(m, baton_claim_wait(m->fleet, &ask, &m->claim, NULL));
	else
		say_claim(m, baton_claim_try(m->fleet, &ask, &m->claim, NULL));
}

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 5)
		return 2;
	struct mate m = {.fleet = NULL};
	struct baton_fleet_options options = {.path = argv[1], .owner = baton_str_z(argv[2])};
	if (argc == 5) {
		options.limits.subjects = (uint32_t)strtoul(argv[3], NULL, 10);
		options.limits.events = (uint32_t)strtoul(argv[4], NULL, 10);
	}
	if (baton_fleet_join(&options, &m.fleet) != BATON_OK) {
		fprintf(stderr, "%s\n", baton_err_detail());
		return 1;
	}
	puts("joined");
	fflush(stdout);
	char line[LINE_BYTES];
	while (fgets(line, sizeof line, stdin))
		obey(&m, line);
	baton_fleet_leave(m.fleet);
	return 0;
}
