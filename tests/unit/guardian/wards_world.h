/* A runner's side with a guardian, in a folder of its own, and waiting for what happens. */
#ifndef GUARDIAN_WARDS_WORLD_H
#define GUARDIAN_WARDS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guardian/wards.h"

#define HOUR 3600

/* How long something may take that happens. */
#define BOUND_MS 60000

struct world {
	char folder[64];
	char life[96], file[96], gate[96];
	struct wards *wards;
	char said[8192]; /* all lines so far, each with a newline */
	char text[8192]; /* the output of the last one that ended */
	size_t text_len;
	bool begun;
	bool lost;
};

/* Makes and ends a world with wards that are open, or not any more. */
int wards_setup(void **state);
int wards_teardown(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, wards_setup, wards_teardown)

/* A command with a grace of an hour, no channel and some output. */
struct ward_spec spec_of(uint64_t id, char *const *argv);

/* Starts a shell with the script. */
enum baton_err start(struct wards *w, uint64_t id, const char *script);

/* Waits for the next news. */
struct ward_news await_news(struct world *w);

/* Waits until `kind` is told, and notes all that comes before. */
struct ward_news await_kind(struct world *w, enum ward_kind kind);
struct ward_news await_end(struct world *w);

/* Waits until this line is said. */
void await_line(struct world *w, const char *line);

/* Runs a script to its end. */
struct ward_news run(struct world *w, const char *script);

/* How a command ended. */
void exits_with(const struct ward_news *news, int code);
void killed_by(const struct ward_news *news, int sig);

#endif
