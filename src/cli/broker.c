/* What commands about a broker share. */
#include "broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#define PATIENCE_S 5

int broker_fail(enum baton_err e)
{
	complain("%s", baton_err_detail());
	switch (e) {
	case BATON_NOT_FOUND:
		return EX_UNAVAILABLE;
	case BATON_INVALID:
		return EX_USAGE;
	case BATON_TIMEOUT:
	case BATON_BUSY:
	case BATON_STALE:
		return EX_TEMPFAIL;
	case BATON_OK:
	case BATON_YIELD:
	case BATON_NOT_HELD:
	case BATON_CANCELLED:
	case BATON_FULL:
	case BATON_NO_MEMORY:
	case BATON_SYSTEM:
	case BATON_GONE:
	case BATON_CONFLICT:
	case BATON_STORAGE:
		break;
	}
	return EX_OSERR;
}

int broker_look(const char *folder, struct baton_broker_status **ret)
{
	enum baton_err e = baton_broker_look(folder, baton_duration_s(PATIENCE_S), ret);
	return e == BATON_OK ? EX_OK : broker_fail(e);
}

const char *broker_text(struct baton_str s, char text[BROKER_TEXT])
{
	snprintf(text, BROKER_TEXT, "%.*s", (int)(s.len < BROKER_TEXT ? s.len : BROKER_TEXT - 1),
	         s.len > 0 ? s.ptr : "-");
	if (s.len == 0)
		snprintf(text, BROKER_TEXT, "-");
	return text;
}
