/* The whole terminal, as long as a command has it. */
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text.h"

#define TEXT_ROOM 1024

#define ENTER "\033[?1049h\033[?25l" /* the other screen, without the cursor */
#define LEAVE "\033[?25h\033[?1049l"

/* What a signal asks for; here, because a handler has no other way to say it. */
static volatile sig_atomic_t end_wanted, stop_wanted;

static void on_end(int number)
{
	(void)number;
	end_wanted = 1;
}

static void on_stop(int number)
{
	(void)number;
	stop_wanted = 1;
}

static void on_resize(int number)
{
	(void)number;
}

/* Signals come only while it waits for a key. */
static void signals_take(void)
{
	static const struct {
		int number;
		void (*handler)(int);
	} all[] = {
		{SIGINT, on_end},   {SIGTERM, on_end},     {SIGHUP, on_end},
		{SIGTSTP, on_stop}, {SIGWINCH, on_resize},
	};
	sigset_t blocked;
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct sigaction action = {.sa_handler = all[i].handler};
		sigemptyset(&action.sa_mask);
		sigaction(all[i].number, &action, NULL);
		sigaddset(&blocked, all[i].number);
	}
	sigprocmask(SIG_BLOCK, &blocked, NULL);
}

static void enter(struct terminal *t)
{
	struct termios raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	out_print(t->out, "%s", ENTER);
}

static void leave(struct terminal *t)
{
	out_print(t->out, "%s", LEAVE);
	tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

bool terminal_open(struct terminal *t, struct out *out)
{
	*t = (struct terminal){.out = out};
	if (!isatty(fileno(out->file)) || tcgetattr(STDIN_FILENO, &t->before) != 0)
		return false;
	signals_take();
	enter(t);
	return true;
}

void terminal_close(struct terminal *t)
{
	leave(t);
	free(t->frame);
	t->frame = NULL;
}

/* As under any other program: the shell has the terminal meanwhile. */
static void stop(struct terminal *t)
{
	stop_wanted = 0;
	leave(t);
	raise(SIGSTOP);
	enter(t);
}

static void put(struct terminal *t, const char *bytes, size_t len)
{
	if (t->used + len > t->room) {
		size_t room = 2 * (t->used + len);
		char *larger = t->full ? NULL : realloc(t->frame, room);
		t->full = !larger;
		if (t->full)
			return;
		t->frame = larger;
		t->room = room;
	}
	memcpy(t->frame + t->used, bytes, len);
	t->used += len;
}

static void put_text(struct terminal *t, const char *text)
{
	put(t, text, strlen(text));
}

void terminal_begin(struct terminal *t)
{
	struct winsize size;
	bool known = ioctl(fileno(t->out->file), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
	             size.ws_col > 0;
	t->rows = known ? size.ws_row : 24;
	t->columns = known ? size.ws_col : 80;
	t->used = 0;
	t->row = t->column = 0;
	t->full = false;
	put_text(t, "\033[H");
}

/* As much of the text as there is room for in the line. */
static void put_cut(struct terminal *t, const char *text)
{
	struct baton_str left = baton_str_z(text);
	while (left.len > 0 && t->column < t->columns && t->row < t->rows) {
		struct baton_str c = text_first(left);
		put(t, c.ptr, c.len);
		left.ptr += c.len;
		left.len -= c.len;
		t->column++;
	}
}

void terminal_add(struct terminal *t, enum look look, const char *text)
{
	put_text(t, look == LOOK_PLAIN ? "" : out_look(t->out, look));
	put_cut(t, text);
	put_text(t, look == LOOK_PLAIN ? "" : out_look(t->out, LOOK_PLAIN));
}

void terminal_colour(struct terminal *t, unsigned colour, const char *text)
{
	char begin[16];
	snprintf(begin, sizeof begin, "\033[%um", 30 + colour);
	bool coloured = colour > 0 && t->out->colour;
	put_text(t, coloured ? begin : "");
	put_cut(t, text);
	put_text(t, coloured ? out_look(t->out, LOOK_PLAIN) : "");
}

void terminal_print(struct terminal *t, enum look look, const char *format, ...)
{
	char text[TEXT_ROOM];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	terminal_add(t, look, text);
}

void terminal_line_end(struct terminal *t)
{
	if (t->row < t->rows)
		put_text(t, "\033[K");
	t->row++;
	t->column = 0;
	if (t->row < t->rows)
		put_text(t, "\r\n");
}

void terminal_go(struct terminal *t, unsigned row)
{
	while (t->row < row)
		terminal_line_end(t);
}

void terminal_show(struct terminal *t)
{
	if (t->row < t->rows)
		put_text(t, "\033[J");
	if (!t->full)
		out_bytes(t->out, t->frame, t->used);
}

static int key_take(struct terminal *t, size_t len, int key)
{
	t->key_count -= len;
	memmove(t->keys, t->keys + len, t->key_count);
	return key;
}

/* The first of those that were read. A sequence that is not known is left out. */
static int key_first(struct terminal *t)
{
	if (t->keys[0] != '\033')
		return key_take(t, 1, (unsigned char)t->keys[0]);
	if (t->key_count < 3 || (t->keys[1] != '[' && t->keys[1] != 'O'))
		return key_take(t, 1, KEY_NONE);
	size_t len = 3;
	while (len < t->key_count && (t->keys[len - 1] < '@' || t->keys[len - 1] > '~'))
		len++;
	int key = t->keys[2] == 'A' ? KEY_UP : t->keys[2] == 'B' ? KEY_DOWN : KEY_NONE;
	return key_take(t, len, key);
}

int terminal_key(struct terminal *t, int timeout_ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	const struct timespec span = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	sigset_t none;
	if (t->key_count > 0)
		return key_first(t);
	sigemptyset(&none);
	int ready = ppoll(&fd, 1, &span, &none);
	if (end_wanted || t->out->errnum != 0)
		return KEY_END;
	if (stop_wanted)
		stop(t);
	if (ready <= 0)
		return KEY_NONE;
	ssize_t n = read(STDIN_FILENO, t->keys, sizeof t->keys);
	if (n <= 0)
		return n < 0 && errno == EINTR ? KEY_NONE : KEY_END;
	t->key_count = (size_t)n;
	return key_first(t);
}
