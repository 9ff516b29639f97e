/* A connection on its way to a persistent worker: which line it belongs to, however the bytes are
 * cut, what becomes of one that cannot be passed, and which worker gets it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "handoff/guest.h"
#include "runner/lodging.h"

#include "support/harness.h"

#define MANY 40

struct world {
	struct worker worker;
	int other; /* the end of the process */
	struct stay stays[MANY];
	int clients[MANY]; /* the other ends of connections */
};

static int make(void **state)
{
	static struct world w;
	int ends[2];
	w = (struct world){.other = -1};
	worker_init(&w.worker, baton_alloc_libc());
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	w.worker.fd = ends[0];
	w.other = ends[1];
	for (int i = 0; i < MANY; i++)
		w.clients[i] = -1;
	*state = &w;
	return 0;
}

static int unmake(void **state)
{
	struct world *w = *state;
	worker_shut(&w->worker);
	if (w->other >= 0)
		close(w->other);
	for (int i = 0; i < MANY; i++) {
		baton_connection_free(w->stays[i].connection);
		if (w->clients[i] >= 0)
			close(w->clients[i]);
	}
	return 0;
}

/* A connection whose client has said its number. */
static struct stay *arrive(struct world *w, unsigned i)
{
	struct guest *guest;
	int ends[2];
	unsigned char number = (unsigned char)i;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(guest_new(baton_alloc_libc(), ends[0], &guest), BATON_OK);
	guest->connection.queue = BATON_STR("rooms");
	guest->connection.lane = BATON_STR("a\"b");
	guest->connection.id = 18446744073709551615u;
	guest->connection.pid = 7;
	guest->connection.uid = 8;
	w->clients[i] = ends[1];
	assert_int_equal(send(ends[1], &number, 1, 0), 1);
	w->stays[i] = (struct stay){.number = i,
	                            .connection = &guest->connection,
	                            .fence = {5},
	                            .given = true};
	return &w->stays[i];
}

/* What a worker has read: bytes of lines, and connections beside them. */
struct reader {
	char line[512];
	size_t len;
	int waiting; /* a connection whose line is not complete; or -1 */
	unsigned lines, visits;
};

static unsigned said_by(int fd)
{
	unsigned char number;
	assert_int_equal(recv(fd, &number, 1, 0), 1);
	return number;
}

static void take_byte(struct reader *r, char byte)
{
	char expected[64];
	if (byte != '\n') {
		assert_true(r->len < sizeof r->line - 1);
		r->line[r->len++] = byte;
		return;
	}
	r->line[r->len] = '\0';
	r->len = 0;
	r->lines++;
	snprintf(expected, sizeof expected, "{\"visit\":%u,", r->visits);
	if (strncmp(r->line, expected, strlen(expected)) != 0) {
		assert_string_equal(r->line, "{\"leave\":99}");
		assert_int_equal(r->waiting, -1);
		return;
	}
	/* The one that came with bytes of this very line is that of its client. */
	assert_true(r->waiting >= 0);
	assert_int_equal(said_by(r->waiting), r->visits);
	close(r->waiting);
	r->waiting = -1;
	r->visits++;
}

/* Reads up to so many bytes. False: there are none now. */
static bool read_some(struct world *w, struct reader *r, size_t max)
{
	char bytes[4096];
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} beside;
	struct iovec iov = {bytes, max};
	struct msghdr m = {.msg_iov = &iov,
	                   .msg_iovlen = 1,
	                   .msg_control = beside.room,
	                   .msg_controllen = sizeof beside.room};
	ssize_t n = recvmsg(w->other, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	assert_false(m.msg_flags & MSG_CTRUNC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	for (ssize_t i = 0; i < n; i++) {
		/* It belongs to the last of the lines that end here, or to the one without end. */
		if (c && i + 1 == n) {
			assert_int_equal(r->waiting, -1);
			memcpy(&r->waiting, CMSG_DATA(c), sizeof r->waiting);
		}
		take_byte(r, bytes[i]);
	}
	return true;
}

/* Makes lines for all of them, with others in between, and reads so many bytes at a time. */
static void pass_all(struct world *w, size_t chunk, unsigned between)
{
	const struct stay other = {.number = 99};
	struct reader r = {.waiting = -1};
	unsigned lines = 0;
	for (unsigned i = 0; i < MANY; i++) {
		for (unsigned k = 0; k < between; k++, lines++)
			assert_int_equal(worker_send_away(&w->worker, &other), BATON_OK);
		assert_int_equal(worker_pass(&w->worker, arrive(w, i)), BATON_OK);
		lines++;
		assert_ptr_equal(w->worker.passing, &w->stays[i]);
		while (!worker_write(&w->worker))
			assert_true(read_some(w, &r, chunk));
		assert_null(w->worker.passing);
		/* This process has it no longer. */
		assert_null(w->stays[i].connection);
	}
	while (read_some(w, &r, chunk))
		;
	assert_int_equal(r.visits, MANY);
	assert_int_equal(r.lines, lines);
	assert_int_equal(r.len, 0);
}

static void a_connection_comes_with_bytes_of_its_own_line(void **state)
{
	pass_all(*state, 4096, 0);
}

static void also_if_it_is_read_by_the_byte(void **state)
{
	pass_all(*state, 1, 1);
}

static void also_if_lines_are_in_the_way(void **state)
{
	pass_all(*state, 97, 3);
}

static void also_if_the_socket_takes_little_at_a_time(void **state)
{
	struct world *w = *state;
	int little = 1;
	assert_int_equal(setsockopt(w->worker.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little),
	                 0);
	pass_all(w, 61, 200);
}

static void the_line_says_whose_it_is(void **state)
{
	struct world *w = *state;
	char found[512];
	assert_int_equal(worker_pass(&w->worker, arrive(w, 3)), BATON_OK);
	assert_true(worker_write(&w->worker));
	ssize_t n = recv(w->other, found, sizeof found - 1, 0);
	assert_true(n > 0);
	found[n] = '\0';
	assert_string_equal(found,
	                    "{\"visit\":3,\"fence\":5,\"queue\":\"rooms\",\"lane\":\"a\\\"b\","
	                    "\"connection\":\"18446744073709551615\",\"client_pid\":7,"
	                    "\"client_uid\":8}\n");
}

static void what_cannot_be_passed_has_no_line(void **state)
{
	struct world *w = *state;
	const struct stay other = {.number = 99};
	char found[512];
	struct stay *stay = arrive(w, 0);
	int fd = stay->connection->fd;
	assert_int_equal(worker_send_away(&w->worker, &other), BATON_OK);
	assert_int_equal(worker_pass(&w->worker, stay), BATON_OK);
	/* As the kernel says EBADF now, it says ETOOMANYREFS to who has too many on the way. */
	stay->connection->fd = 1 << 20;
	assert_true(worker_write(&w->worker));
	stay->connection->fd = fd;
	assert_null(w->worker.passing);
	assert_int_equal(worker_send_away(&w->worker, &other), BATON_OK);
	assert_true(worker_write(&w->worker));
	ssize_t n = recv(w->other, found, sizeof found, 0);
	assert_int_equal(n, 26);
	assert_memory_equal(found, "{\"leave\":99}\n{\"leave\":99}\n", 26);
}

static void who_has_gone_leaves_the_connection_closed(void **state)
{
	struct world *w = *state;
	char byte;
	close(w->other);
	w->other = -1;
	assert_int_equal(worker_pass(&w->worker, arrive(w, 0)), BATON_OK);
	assert_true(worker_write(&w->worker));
	assert_null(w->worker.passing);
	assert_null(w->stays[0].connection);
	/* What the client has said was not read. */
	assert_true(recv(w->clients[0], &byte, 1, 0) <= 0);
}

static void a_line_that_finds_no_room_passes_nothing(void **state)
{
	struct world *w = *state;
	w->worker.out.max = 20;
	assert_int_equal(worker_pass(&w->worker, arrive(w, 0)), BATON_FULL);
	assert_null(w->worker.passing);
	assert_int_equal(w->worker.out.len, 0);
}

/* Two workers, and a connection that has come for them. */
struct house {
	struct streams streams;
	struct worker workers[2];
	struct stay stays[2];
	unsigned left; /* connections that nobody serves */
};

static void count_left(void *arg, uint64_t visit)
{
	struct house *h = arg;
	(void)visit;
	h->left++;
}

#define NOW ((struct baton_mono){INT64_C(100000000000)})
#define LATER ((struct baton_mono){INT64_C(200000000000)})

static void house_begin(struct world *w, struct house *h)
{
	*h = (struct house){
		.streams = {.o = {.alloc = baton_alloc_libc(),
	                          .processes = 2,
	                          .visits = 2,
	                          .left = count_left,
	                          .arg = h},
	                    .workers = h->workers,
	                    .due = BATON_MONO_NEVER},
		.stays = {{.visit = 1, .due = LATER}, {.visit = 2, .due = LATER}},
	};
	for (int i = 0; i < 2; i++) {
		worker_init(&h->workers[i], baton_alloc_libc());
		h->workers[i].is = WORKER_ON;
		h->workers[i].started = NOW;
	}
	h->stays[1].connection = TAKE(arrive(w, 0)->connection);
	stays_add(&h->streams.arriving, &h->stays[1]);
}

static void house_end(struct house *h)
{
	baton_connection_free(h->stays[1].connection);
	for (int i = 0; i < 2; i++)
		worker_shut(&h->workers[i]);
}

static void greets(struct house *h, unsigned worker, uint32_t takes)
{
	const struct reply reply = {.about = REPLY_VISITS, .visits = takes};
	char error[REPLY_ERROR];
	h->workers[worker].heard = true;
	assert_true(lodging_hear(&h->streams, &h->workers[worker], &reply, error));
}

static void a_worker_that_takes_none_keeps_nobody_from_those_that_do(void **state)
{
	struct house h;
	house_begin(*state, &h);
	/* One has as many as it takes, the other wants none. */
	greets(&h, 0, 1);
	stays_add(&h.workers[0].stays, &h.stays[0]);
	greets(&h, 1, 0);
	lodging_assign(&h.streams, NOW);
	assert_int_equal(h.left, 0);
	assert_ptr_equal(h.streams.arriving.first, &h.stays[1]);
	/* When there is room, it is that one's. */
	stays_remove(&h.workers[0].stays, &h.stays[0]);
	lodging_assign(&h.streams, NOW);
	assert_int_equal(h.left, 0);
	assert_ptr_equal(h.workers[0].stays.first, &h.stays[1]);
	house_end(&h);
}

static void who_has_not_said_it_yet_may_take_some(void **state)
{
	struct house h;
	house_begin(*state, &h);
	greets(&h, 1, 0);
	lodging_assign(&h.streams, NOW);
	assert_int_equal(h.left, 0);
	greets(&h, 0, 1);
	lodging_assign(&h.streams, NOW);
	assert_ptr_equal(h.workers[0].stays.first, &h.stays[1]);
	house_end(&h);
}

static void if_all_take_none_it_is_turned_away(void **state)
{
	struct house h;
	house_begin(*state, &h);
	greets(&h, 0, 0);
	greets(&h, 1, 0);
	lodging_assign(&h.streams, NOW);
	assert_int_equal(h.left, 1);
	assert_null(h.stays[1].connection);
	house_end(&h);
}

static void who_says_nothing_for_long_is_not_waited_for(void **state)
{
	struct house h;
	house_begin(*state, &h);
	h.workers[1].is = WORKER_OFF;
	h.workers[1].not_before = LATER;
	struct baton_mono over = baton_mono_add(NOW, baton_duration_ms(LODGING_WAIT_MS));
	lodging_assign(&h.streams, NOW);
	assert_int_equal(h.streams.due.ns, over.ns);
	/* Then the other one is to be started. */
	h.streams.due = BATON_MONO_NEVER;
	lodging_assign(&h.streams, over);
	assert_int_equal(h.streams.due.ns, LATER.ns);
	assert_int_equal(h.left, 0);
	house_end(&h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_connection_comes_with_bytes_of_its_own_line),
		TEST(also_if_it_is_read_by_the_byte),
		TEST(also_if_lines_are_in_the_way),
		TEST(also_if_the_socket_takes_little_at_a_time),
		TEST(the_line_says_whose_it_is),
		TEST(what_cannot_be_passed_has_no_line),
		TEST(who_has_gone_leaves_the_connection_closed),
		TEST(a_line_that_finds_no_room_passes_nothing),
		TEST(a_worker_that_takes_none_keeps_nobody_from_those_that_do),
		TEST(who_has_not_said_it_yet_may_take_some),
		TEST(if_all_take_none_it_is_turned_away),
		TEST(who_says_nothing_for_long_is_not_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
