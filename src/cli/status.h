/* The exit statuses of the program, which are those of sysexits.h. */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <baton.h>

/* The status for what the library has answered:
 *
 *	EX_OK           BATON_OK
 *	1               the command's own "no": BATON_YIELD, BATON_NOT_HELD, BATON_STALE,
 *	                BATON_NOT_FOUND
 *	EX_DATAERR      BATON_INVALID, BATON_CONFLICT: what is there is not what it should be
 *	EX_UNAVAILABLE  BATON_FULL, BATON_GONE
 *	EX_OSERR        BATON_SYSTEM, BATON_NO_MEMORY
 *	EX_IOERR        BATON_STORAGE
 *	EX_TEMPFAIL     BATON_BUSY, BATON_TIMEOUT, BATON_CANCELLED
 *
 * What a command can tell to be a wrong call is EX_USAGE, and is found out before the library is
 * asked. */
int status_of(enum baton_err e);

#endif
