/* What the demo shows while it runs. */
#include "view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)
#define LINES_EVERY_NS (2 * NS_PER_S)
#define RATE_EVERY_NS (NS_PER_S / 2)
#define TEXT_ROOM 160
#define FRAME_ROOM 4096
#define LINE_END "\033[K\n" /* and nothing behind it on the terminal */
#define BAR "########################################"
#define BAR_WIDTH ((int)sizeof BAR - 1)

static const enum look looks[CREW_RUNNERS] = {LOOK_WAITING, LOOK_GOOD, LOOK_BOLD};

void view_begin(struct view *v, struct out *out, int64_t now_ns)
{
	*v = (struct view){.out = out, .began_ns = now_ns, .told_ns = now_ns, .looked_ns = now_ns};
}

void view_end(struct view *v)
{
	if (v->drawn > 0)
		out_print(v->out, "\033[%uA\r\033[J", v->drawn);
	v->drawn = 0;
}

static double seconds(const struct view *v, int64_t now_ns)
{
	return (double)(now_ns - v->began_ns) / (double)NS_PER_S;
}

void view_tell(struct view *v, int64_t now_ns, const char *format, ...)
{
	char text[TEXT_ROOM];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	view_end(v);
	out_print(v->out, "%s%5.1f s%s  %s\n", out_look(v->out, LOOK_FAINT), seconds(v, now_ns),
	          out_look(v->out, LOOK_PLAIN), text);
}

/* How many shards the runner has. */
static unsigned count_of(const struct picture *p, int runner)
{
	unsigned count = 0;
	for (size_t i = 0; i < p->shards; i++)
		count += p->owners[i] == runner;
	return count;
}

/* A picture before it is drawn, so that it is drawn at once. */
struct frame {
	char text[FRAME_ROOM];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct frame *f, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int len = vsnprintf(f->text + f->used, sizeof f->text - f->used, format, args);
	va_end(args);
	f->used += len > 0 ? (size_t)len : 0;
	f->used = f->used < sizeof f->text ? f->used : sizeof f->text - 1;
}

static void add_shards(struct frame *f, const struct out *out, const struct picture *p)
{
	add(f, "         shards  ");
	for (size_t i = 0; i < p->shards; i++) {
		int owner = p->owners[i];
		add(f, "%s%c%s ", out_look(out, owner < 0 ? LOOK_BAD : looks[owner]),
		    owner < 0 ? '-' : crew_names[owner][0], out_look(out, LOOK_PLAIN));
	}
	add(f, LINE_END);
}

static void draw(struct view *v, const struct picture *p)
{
	struct frame f = {.used = 0};
	int filled = (int)(p->accepted * (uint32_t)BAR_WIDTH / p->all);
	if (v->drawn > 0)
		add(&f, "\033[%uA\r", v->drawn);
	add(&f, LINE_END "         jobs    [%.*s%*s] %u of %u, %u a second" LINE_END, filled, BAR,
	    BAR_WIDTH - filled, "", p->accepted, p->all, v->rate);
	add_shards(&f, v->out, p);
	for (int i = 0; i < CREW_RUNNERS; i++)
		add(&f, "         %s%-6s%s  %2u shards, %s" LINE_END, out_look(v->out, looks[i]),
		    crew_names[i], out_look(v->out, LOOK_PLAIN), count_of(p, i), p->states[i]);
	out_bytes(v->out, f.text, f.used);
	v->drawn = 3 + CREW_RUNNERS;
}

/* One line with all of it. */
static void tell_all(struct view *v, int64_t now_ns, const struct picture *p)
{
	char text[TEXT_ROOM];
	size_t used =
		(size_t)snprintf(text, sizeof text, "%u of %u jobs; shards:", p->accepted, p->all);
	for (int i = 0; i < CREW_RUNNERS; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, " %s %u", crew_names[i],
		                         count_of(p, i));
	view_tell(v, now_ns, "%s", text);
}

void view_show(struct view *v, int64_t now_ns, const struct picture *p)
{
	int64_t passed = now_ns - v->looked_ns;
	if (passed >= RATE_EVERY_NS) {
		v->rate = (uint32_t)((int64_t)(p->accepted - v->accepted) * NS_PER_S / passed);
		v->accepted = p->accepted;
		v->looked_ns = now_ns;
	}
	if (v->out->colour) {
		draw(v, p);
	} else if (now_ns - v->told_ns >= LINES_EVERY_NS) {
		v->told_ns = now_ns;
		tell_all(v, now_ns, p);
	}
}
