/* What it costs that a broker hands a connection over, beside a direct connection and proxies. */
#include <dirent.h>
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "claims/arena.h"
#include "harness.h"
#include "links/links.h"

#define IDLE 1000u
#define TAKES 4001u
#define BLOCKS 5u

/* What a case is about. */
struct load {
	bool steady;        /* requests on one connection; else new connections */
	enum link_way ours; /* by which way the subject connects */
};

static const struct load pipelined = {false, LINK_PIPELINED}, plain = {false, LINK_HANDOFF},
			 repeatable = {false, LINK_REPEATABLE}, steady = {true, LINK_PIPELINED};

struct seat {
	enum link_way way;
	bool steady;
	int fd; /* of the steady one */
};

static void *seat_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	const enum link_way *way = self->arg;
	enum link_way by = way ? *way : load->ours;
	/* Once it is there, a connection by reconnecting is a direct one. */
	if (!links_ready(by) || (load->steady && (by == LINK_RECONNECT || by == LINK_FLOOR)) ||
	    (load->ours == LINK_HANDOFF && by == LINK_FLOOR))
		return NULL;
	struct seat *seat = arena_new(sizeof *seat);
	*seat = (struct seat){by, load->steady, load->steady ? links_connect(by) : -1};
	return seat;
}

static uint64_t seat_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct seat *seat = state;
	(void)thread;
	(void)from;
	for (uint64_t i = 0; i < ops; i++) {
		if (seat->steady)
			links_echo(seat->fd);
		else
			close(links_connect(seat->way));
	}
	return ops;
}

static double seat_sample(void *state)
{
	const struct seat *seat = state;
	int64_t begin = arena_now();
	int fd = links_connect(seat->way);
	int64_t end = arena_now();
	links_close(fd);
	return (double)(end - begin);
}

static void seat_teardown(void *state)
{
	struct seat *seat = state;
	if (seat->fd >= 0)
		close(seat->fd);
	free(seat);
}

static const enum link_way direct = LINK_DIRECT, reconnect = LINK_RECONNECT, haproxy = LINK_HAPROXY,
			   nginx = LINK_NGINX, bare = LINK_FLOOR;

#define SEAT .setup = seat_setup, .run = seat_run, .sample = seat_sample, .teardown = seat_teardown

static const struct contestant contestants[] = {
	{.name = "handoff", .about = "baton_client_connect()", .role = ROLE_SUBJECT, SEAT},
	{.name = "direct",
         .about = "connect(2) to the server",
         .role = ROLE_FLOOR,
         SEAT,
         .arg = &direct},
	{.name = "bare broker",
         .about = "the same calls, and nothing else",
         .role = ROLE_FLOOR,
         SEAT,
         .arg = &bare},
	{.name = "reconnect",
         .about = "the broker says where to connect",
         .role = ROLE_RIVAL,
         SEAT,
         .arg = &reconnect},
	{.name = "HAProxy",
         .about = "mode tcp, as it comes",
         .role = ROLE_RIVAL,
         SEAT,
         .arg = &haproxy},
	{.name = "nginx", .about = "stream, one process", .role = ROLE_RIVAL, SEAT, .arg = &nginx},
};

static const struct bench_case cases[] = {
	{.name = "connect/pipelined",
         .group = "connect to first reply",
         .label = "request behind the Hello",
         .threads = 1,
         .samples = 200,
         .load = &pipelined,
         .goal = {[ROLE_RIVAL] = 1},
         .against = {[ROLE_RIVAL] = "reconnect"}},
	{.name = "connect/repeatable",
         .group = "connect to first reply",
         .label = "of what may be repeated",
         .threads = 1,
         .samples = 200,
         .load = &repeatable,
         .goal = {[ROLE_RIVAL] = 1},
         .against = {[ROLE_RIVAL] = "reconnect"}},
	{.name = "connect/plain",
         .group = "connect to first reply",
         .label = "request after the connection",
         .threads = 1,
         .samples = 200,
         .load = &plain,
         .goal = {[ROLE_RIVAL] = 1},
         .against = {[ROLE_RIVAL] = "reconnect"}},
	{.name = "connections/1",
         .group = "connections",
         .label = "1 client",
         .threads = 1,
         .ops = 500,
         .load = &pipelined},
	{.name = "connections/4",
         .group = "connections",
         .label = "4 clients",
         .threads = 4,
         .ops = 200,
         .load = &pipelined},
	{.name = "echo",
         .group = "echo of 1 KiB",
         .label = "one connection",
         .threads = 1,
         .ops = 2000,
         .slices = 20,
         .load = &steady,
         .goal = {[ROLE_FLOOR] = 1.05, [ROLE_RIVAL] = 0.5}},
};

/* How much longer by that way than directly, in turns, in the middle: in microseconds. */
static double block_us(enum link_way way)
{
	static double ours[TAKES / BLOCKS], theirs[TAKES / BLOCKS];
	struct seat us = {way, false, -1}, them = {LINK_DIRECT, false, -1};
	for (unsigned i = 0; i < TAKES / BLOCKS; i++) {
		ours[i] = seat_sample(&us);
		theirs[i] = seat_sample(&them);
	}
	stats_sort(ours, TAKES / BLOCKS);
	stats_sort(theirs, TAKES / BLOCKS);
	return (ours[TAKES / BLOCKS / 2] - theirs[TAKES / BLOCKS / 2]) / 1000;
}

/* The ways that are compared with a direct one. */
enum { BEYOND_PIPELINED, BEYOND_REPEATABLE, BEYOND_WELCOMED, BEYOND_FLOOR, BEYOND };

/* The same by each of these ways, in the middle of some blocks, in turns: where the kernel has put
 * the processes stays for a while, and is another matter in the next. */
static void beyond_direct_us(double ret[BEYOND])
{
	static const enum link_way ways[BEYOND] = {LINK_PIPELINED, LINK_REPEATABLE, LINK_WELCOMED,
	                                           LINK_FLOOR};
	double blocks[BEYOND][BLOCKS];
	for (unsigned i = 0; i < BLOCKS; i++)
		for (unsigned way = 0; way < BEYOND; way++)
			blocks[way][i] = block_us(ways[way]);
	for (unsigned way = 0; way < BEYOND; way++) {
		stats_sort(blocks[way], BLOCKS);
		ret[way] = blocks[way][BLOCKS / 2];
	}
}

static double p99(double *samples)
{
	stats_sort(samples, TAKES);
	return samples[TAKES * 99 / 100];
}

/* The 99th percentile by one way, as a multiple of that by another, in turns, in the middle of some
 * blocks. */
static double tail_ratio(enum link_way way, enum link_way other)
{
	static double ours[TAKES], theirs[TAKES];
	struct seat us = {way, false, -1}, them = {other, false, -1};
	double blocks[BLOCKS];
	for (unsigned block = 0; block < BLOCKS; block++) {
		for (unsigned i = 0; i < TAKES; i++) {
			ours[i] = seat_sample(&us);
			theirs[i] = seat_sample(&them);
		}
		blocks[block] = p99(ours) / p99(theirs);
	}
	stats_sort(blocks, BLOCKS);
	return blocks[BLOCKS / 2];
}

/* The 99th percentile beside clients of the broker that say nothing, as a multiple of that without
 * them, in turns of many connections. */
static double silent_ratio(void)
{
	static double with[TAKES], without[TAKES];
	static int silent[IDLE];
	struct seat seat = {LINK_PIPELINED, false, -1};
	unsigned begin = 0;
	for (unsigned turn = 1; turn <= 10; turn++) {
		unsigned end = TAKES * turn / 10;
		for (unsigned i = begin; i < end; i++)
			without[i] = seat_sample(&seat);
		for (unsigned i = 0; i < IDLE; i++)
			silent[i] = links_silent();
		for (unsigned i = begin; i < end; i++)
			with[i] = seat_sample(&seat);
		for (unsigned i = 0; i < IDLE; i++)
			close(silent[i]);
		begin = end;
	}
	return p99(with) / p99(without);
}

/* The anonymous memory of the broker, in bytes. */
static double broker_memory(void)
{
	char path[64], line[256];
	double kib = 0;
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)links_broker());
	FILE *from = fopen(path, "r");
	while (from && fgets(line, sizeof line, from))
		if (sscanf(line, "Private_Dirty: %lf", &kib) == 1)
			break;
	if (from)
		fclose(from);
	return kib * 1024;
}

static double broker_descriptors(void)
{
	char path[64];
	double count = 0;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)links_broker());
	DIR *folder = opendir(path);
	/* cppcheck-suppress readdirCalled */
	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/* Where the bare broker is beyond a goal too, it says more about the machine. */
static size_t beyond_facts(struct fact *ret, bool together)
{
	double us[BEYOND];
	links_gather(together);
	beyond_direct_us(us);
	ret[0] = (struct fact){together ? "on one core, handoff, pipelined: p50 beyond direct"
	                                : "handoff, pipelined: p50 beyond direct",
	                       "us", us[BEYOND_PIPELINED], 25, us[BEYOND_FLOOR]};
	ret[1] = (struct fact){"the same, of what may be repeated", "us", us[BEYOND_REPEATABLE], 15,
	                       us[BEYOND_FLOOR]};
	ret[2] = (struct fact){"the same, with a Welcome", "us", us[BEYOND_WELCOMED], NAN, 0};
	ret[3] = (struct fact){"the same, a bare broker", "us", us[BEYOND_FLOOR], NAN, 0};
	return 4;
}

static size_t idle_facts(struct fact *ret)
{
	static int idle[IDLE];
	double memory = broker_memory(), descriptors = broker_descriptors();
	for (unsigned i = 0; i < IDLE; i++)
		idle[i] = links_connect(LINK_PIPELINED);
	ret[0] = (struct fact){"memory at the broker for an idle connection, of 1,000", "bytes",
	                       fmax(broker_memory() - memory, 0) / IDLE, 16, 0};
	ret[1] = (struct fact){"descriptors at the broker for these 1,000", "",
	                       fmax(broker_descriptors() - descriptors, 0), 0, 0};
	for (unsigned i = 0; i < IDLE; i++)
		close(idle[i]);
	return 2;
}

static size_t facts(struct fact *ret, size_t max)
{
	if (max < 12 || !links_ready(LINK_PIPELINED))
		return 0;
	size_t n = beyond_facts(ret, false);
	n += idle_facts(ret + n);
	ret[n++] = (struct fact){"handoff, pipelined: p99, as a multiple of reconnecting", "",
	                         tail_ratio(LINK_PIPELINED, LINK_RECONNECT), 1, 0};
	ret[n++] = (struct fact){"the same p99 beside 1,000 silent clients, as a multiple", "",
	                         silent_ratio(), NAN, 0};
	n += beyond_facts(ret + n, true);
	links_gather(false);
	return n;
}

static const char about[] =
	"One server that echoes requests of 1 KiB is at the end of all ways, one broker and one\n"
	"proxy of each kind in the middle; all of it on unix sockets.\n"
	"*connect to first reply*: the time of a new connection until its first request is\n"
	"answered. *connections*: the time of one that is closed then, by one client or several\n"
	"at once. *echo of 1 KiB*: the time of a request on a connection that is there.\n"
	"The goals beyond a direct connection are 25 us, and 15 us for a service whose first\n"
	"request may be repeated, in the middle of five blocks; where the bare broker is beyond\n"
	"one, too, it is limited by the machine. With all processes on one core nobody has to be\n"
	"woken on an idle one, which takes a multiple of what there is to do. A page that the\n"
	"broker touches by chance is 4 bytes for each of 1,000 connections.\n";

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "handoff",
		.title = "Handoff",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof contestants[0],
		.cases = cases,
		.case_count = sizeof cases / sizeof cases[0],
		.facts = facts,
	};
	return bench_main(&bench, argc, argv);
}
