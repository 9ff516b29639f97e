/* What a file says about a service that the broker starts itself: lines of `key = value`. */
#ifndef HANDOFF_DEFINITION_H
#define HANDOFF_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/broker.h>
#include <baton/err.h>
#include <baton/str.h>
#include <baton/time.h>

#include "base/arena.h"

#define DEFINITION_FILE_MAX (64u << 10)
#define DEFINITION_LINE_MAX 4096
#define DEFINITION_WORDS_MAX 64
#define DEFINITION_USERS_MAX 32
#define DEFINITION_VARIABLES_MAX 64
#define DEFINITION_VERSION_MAX 64
#define DEFINITION_COMMANDS_MAX 65536
#define DEFINITION_COMMANDS 128

/* How the command gets connections. */
enum definition_takes {
	TAKES_HANDOFF = 1, /* it registers as a backend, one process for all of them         */
	TAKES_STDIO,       /* one process for each, whose standard input and output it is    */
	TAKES_FD3          /* the same, as descriptor 3 with LISTEN_FDS, as systemd passes it */
};

/* Its texts are in the arena of who read it. */
struct definition {
	char name[BATON_SERVICE_MAX + 1];
	char **command; /* its words, and NULL */
	enum definition_takes takes;
	char version[DEFINITION_VERSION_MAX + 1]; /* "": any client is right */
	uint32_t allow[DEFINITION_USERS_MAX];     /* users besides this one  */
	size_t allow_count;
	const char *folder; /* NULL: that of the broker */
	char *environment[DEFINITION_VARIABLES_MAX];
	size_t environment_count;
	bool no_new_privileges;
	uint64_t open_files;           /* 0: as many as the broker */
	uint64_t memory;               /* bytes; 0: as the broker  */
	uint32_t max;                  /* processes at once, unless TAKES_HANDOFF */
	struct baton_broker_rate rate; /* of clients; a count of 0: there is no limit */
	struct baton_duration start;
	struct baton_duration stop;
	struct baton_duration idle;  /* BATON_DURATION_FOREVER: it is not stopped */
	struct baton_duration probe; /* BATON_DURATION_FOREVER: it is not asked whether it lives */
};

/* What is read, and who is told what is wrong with it. */
struct definition_source {
	const char *file; /* for messages */
	struct baton_str name;
	struct baton_str text;
	bool (*user)(const char *name, uint32_t *ret_uid); /* false: there is no such user */
	void (*wrong)(void *arg, const char *sentence);    /* once for each line           */
	void *arg;
};

/* Reads one. BATON_INVALID: `wrong` was told why, line by line. BATON_NO_MEMORY. */
enum baton_err definition_read(const struct definition_source *source, struct arena *arena,
                               struct definition *ret);

/* Whether clients of that user are served, besides those of the broker's own. */
bool definition_allows(const struct definition *d, uint32_t uid);

#endif
