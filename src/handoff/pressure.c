/* What a broker does when descriptors run out. */
#include "handoff/pressure.h"

void pressure_init(struct pressure *p, uint64_t limit)
{
	*p = (struct pressure){.limit = limit, .level = PRESSURE_NONE};
}

void pressure_accepted(struct pressure *p, uint64_t used)
{
	if (used >= p->limit / 4 * 3) {
		p->good = 0;
		if (p->level == PRESSURE_NONE)
			p->level = PRESSURE_SHORT;
		return;
	}
	if (p->level != PRESSURE_NONE && ++p->good >= PRESSURE_GOOD)
		pressure_init(p, p->limit);
}

void pressure_failed(struct pressure *p, bool refused)
{
	p->good = 0;
	p->level = refused ? PRESSURE_REFUSING : PRESSURE_PAUSED;
}

void pressure_resume(struct pressure *p)
{
	if (p->level == PRESSURE_PAUSED)
		p->level = PRESSURE_REFUSING;
}
