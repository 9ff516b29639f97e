/* The exit statuses of the program, which are those of sysexits.h. */
#include <stdlib.h>
#include <sysexits.h>

#include "status.h"

int status_of(enum baton_err e)
{
	switch (e) {
	case BATON_OK:
		return EX_OK;
	case BATON_YIELD:
	case BATON_NOT_HELD:
	case BATON_STALE:
	case BATON_NOT_FOUND:
		return EXIT_FAILURE;
	case BATON_INVALID:
	case BATON_CONFLICT:
		return EX_DATAERR;
	case BATON_FULL:
	case BATON_GONE:
		return EX_UNAVAILABLE;
	case BATON_SYSTEM:
	case BATON_NO_MEMORY:
		return EX_OSERR;
	case BATON_STORAGE:
		return EX_IOERR;
	case BATON_BUSY:
	case BATON_TIMEOUT:
	case BATON_CANCELLED:
		return EX_TEMPFAIL;
	}
	return EX_SOFTWARE;
}
