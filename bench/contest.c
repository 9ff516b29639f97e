/* How fast claims between processes are, beside what the system offers for that. */
#include <stdlib.h>

#include "claims/arena.h"
#include "claims/game.h"
#include "harness.h"

#define MIB ((size_t)1 << 20)

/* A player in a case. */
struct seat {
	const struct game *game;
	void *state;
};

static void *seat_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	void *state = load->game->setup(*(const enum player *)self->arg, load);
	if (!state)
		return NULL;
	struct seat *seat = arena_new(sizeof *seat);
	*seat = (struct seat){load->game, state};
	return seat;
}

static uint64_t seat_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct seat *seat = state;
	return seat->game->run(seat->state, thread, from, ops);
}

static double seat_sample(void *state)
{
	const struct seat *seat = state;
	return seat->game->sample(seat->state);
}

static void seat_teardown(void *state)
{
	struct seat *seat = state;
	seat->game->teardown(seat->state);
	free(seat);
}

#define FLOCK "flock"
#define MUTEX "robust mutex"

/* clang-format off */
#define CONTESTANT(n, r, p, a)                                                       \
	{.name = (n), .about = (a), .role = (r), .setup = seat_setup,                \
	 .run = seat_run, .sample = seat_sample, .teardown = seat_teardown,          \
	 .arg = &(const enum player){p}}

static const struct contestant contestants[] = {
	CONTESTANT("contest", ROLE_SUBJECT, PLAYER_CONTEST, "this library's claims and wake-ups"),
	CONTESTANT("contest alone", ROLE_FLOOR, PLAYER_ALONE,
	           "the same, where nothing else is held and nobody watches"),
	CONTESTANT(FLOCK, ROLE_RIVAL, PLAYER_FLOCK, "flock(2) on an open file in memory"),
	CONTESTANT("OFD lock", ROLE_RIVAL, PLAYER_OFD,
	           "fcntl(2) with F_OFD_SETLK on an open file in memory"),
	CONTESTANT(MUTEX, ROLE_RIVAL, PLAYER_MUTEX,
	           "robust pthread_mutex_t in shared memory; it has no name, time limit or fence"),
	CONTESTANT("compare-and-swap", ROLE_FLOOR, PLAYER_CAS,
	           "16 bytes in shared memory: load, swap to mine; load, swap back"),
	CONTESTANT("futex", ROLE_FLOOR, PLAYER_FUTEX, "futex(2) on a word in shared memory"),
};

#define LOAD(...) &(const struct load){__VA_ARGS__}
#define PAIRS 20000
#define SLICES 20

/* The claimer never sleeps, so its own time on the processor counts. */
#define PAIR(n, l, load_, ...)                                                       \
	{.name = "pair/" n, .group = "pair", .label = (l), .threads = 1,             \
	 .ops = PAIRS, .slices = SLICES, .cpu = true, .against[ROLE_RIVAL] = FLOCK,  \
	 .goal[ROLE_RIVAL] = 0.2, .load = (load_), __VA_ARGS__}
#define GROWTH(n, g, l, load_, ...)                                                  \
	{.name = (n), .group = (g), .label = (l), .threads = 1, .ops = PAIRS,        \
	 .cpu = true, .goal[ROLE_FLOOR] = 1.5, .load = (load_), __VA_ARGS__}
#define SLICED .slices = SLICES
#define LATENCY(n, g, l, times, load_, ...)                                          \
	{.name = (n), .group = (g), .label = (l), .threads = 1, .samples = (times),  \
	 .load = (load_), __VA_ARGS__}

static const struct bench_case cases[] = {
	PAIR("again", "seen before", LOAD(.game = &game_pair, .rivals = true),
	     .goal[ROLE_FLOOR] = 3),
	PAIR("cold", "looked up", LOAD(.game = &game_pair, .rivals = true, .cold = true)),
	PAIR("ttl", "with a ttl", LOAD(.game = &game_pair, .rivals = true, .ttl_ms = 60000)),
	PAIR("now", "at a given moment",
	     LOAD(.game = &game_pair, .rivals = true, .fixed_now = true)),
	GROWTH("held/1", "held", "1 held", LOAD(.game = &game_pair, .held = 1), SLICED),
	GROWTH("held/1000", "held", "1,000 held", LOAD(.game = &game_pair, .held = 1000), SLICED),
	GROWTH("held/100000", "held", "100,000 held", LOAD(.game = &game_pair, .held = 100000),
	       SLICED),
	GROWTH("held/1/cold", "held, looked up", "1 held",
	       LOAD(.game = &game_pair, .cold = true, .held = 1), SLICED),
	GROWTH("held/1000/cold", "held, looked up", "1,000 held",
	       LOAD(.game = &game_pair, .cold = true, .held = 1000), SLICED),
	GROWTH("held/100000/cold", "held, looked up", "100,000 held",
	       LOAD(.game = &game_pair, .cold = true, .held = 100000), SLICED),
	GROWTH("watched/0", "watched", "nobody", LOAD(.game = &game_pair), SLICED),
	GROWTH("watched/1", "watched", "1 watch", LOAD(.game = &game_pair, .watches = 1), SLICED),
	GROWTH("watched/64", "watched", "64 watches", LOAD(.game = &game_pair, .watches = 64),
	       SLICED),
	/* Whole turns: in a slice nobody would have the time to fall asleep again. */
	GROWTH("watched/1/reading", "watched by readers", "1 reader",
	       LOAD(.game = &game_pair, .watches = 1, .reading = true)),
	GROWTH("watched/64/reading", "watched by readers", "64 readers",
	       LOAD(.game = &game_pair, .watches = 64, .reading = true)),
	{.name = "pass/awake", .group = "pass, awake", .label = "a hand-over", .threads = 1,
	 .ops = 1000, .goal[ROLE_RIVAL] = 2, .against[ROLE_RIVAL] = MUTEX,
	 .load = LOAD(.game = &game_pass)},
	LATENCY("pass/asleep", "pass, asleep", "release to held", 100,
	        LOAD(.game = &game_pass_asleep), .goal[ROLE_RIVAL] = 2,
	        .against[ROLE_RIVAL] = MUTEX),
	LATENCY("takeover/10M", "takeover", "10 MiB", 20,
	        LOAD(.game = &game_takeover, .resident = 10 * MIB), .p99_goal_ns = 1e6,
	        .against[ROLE_RIVAL] = MUTEX),
	LATENCY("takeover/1G", "takeover", "1 GiB", 5,
	        LOAD(.game = &game_takeover, .resident = 1024 * MIB), .p99_goal_ns = 1e6,
	        .against[ROLE_RIVAL] = MUTEX),
	LATENCY("stopped/line", "stopped", "first in line", 4, LOAD(.game = &game_stopped_line),
	        .p99_goal_ns = 12e6),
	LATENCY("stopped/lock", "stopped", "in the index", 4, LOAD(.game = &game_stopped_lock),
	        .p99_goal_ns = 12e6),
	LATENCY("wakeup", "wakeup", "publish to heard", 100, LOAD(.game = &game_wakeup)),
};
/* clang-format on */

static const char about[] =
	"*pair*: something free is taken and given back; *held*, *watched*: the same while\n"
	"other subjects are held, while watches are open in another process, and while each\n"
	"of these has a thread that is woken by what happens. These figures are the time\n"
	"that the claiming thread itself has the processor for. *pass*: two processes hand one\n"
	"thing back and forth; nobody asks before the other one holds, and nobody lets go\n"
	"before the other one asks, so every hold is handed over. *awake*: at once, wall time\n"
	"per hand-over; *asleep*: from just before the release until the other one, asleep in\n"
	"line, holds. *takeover*: from just before SIGKILL of the holder, which has written to\n"
	"so much memory, until the waiter holds. *stopped*: from the release until the second\n"
	"in line holds, the first being stopped; and from asking for a new subject to BUSY,\n"
	"somebody being stopped with the lock of its part of the index. *wakeup*: from just\n"
	"before the call until the sleeping listener has returned. Latencies include the wait\n"
	"for a processor: beside other work only their p50 says much. A takeover whose p99\n"
	"misses its goal together with that of the robust mutex, of which the kernel takes\n"
	"care itself, is limited by the machine, and nothing is decided.";

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "contest",
		.title = "Contest",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof *contestants,
		.cases = cases,
		.case_count = sizeof cases / sizeof *cases,
	};
	return bench_main(&bench, argc, argv);
}
