/* Whether the file under an open store is still all there. */
#include "store/sqlite/whole.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "store/sqlite/sqlite.h"

/* The head of an SQLite file, as its documentation has it: numbers are big-endian. */
#define HEAD_BYTES 100
#define PAGE_SIZE_AT 16 /* two bytes; 1 is for 65536 */
#define PAGES_AT 28     /* four bytes */

static const char magic[16] = "SQLite format 3";

static int64_t number(const unsigned char *at, int bytes)
{
	int64_t n = 0;
	for (int i = 0; i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

/* How long the file was when its head was written. It may be shorter for a moment while somebody
 * copies a log into it. */
static int64_t size_told(const unsigned char *head)
{
	int64_t page = number(head + PAGE_SIZE_AT, 2);
	return number(head + PAGES_AT, 4) * (page == 1 ? 65536 : page);
}

enum baton_err whole_check(struct sqlite_store *s)
{
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;
	unsigned char head[HEAD_BYTES] = {0};
	if (sqlite3_file_control(s->read.handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) !=
	            SQLITE_OK ||
	    !file || !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
		return BATON_OK;
	int code = file->pMethods->xRead(file, head, sizeof head, 0);
	if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)
		return BATON_OK; /* whoever needs it is told */
	int64_t largest = s->largest;
	bool is_ours = memcmp(head, magic, sizeof magic) == 0;
	/* It becomes smaller, and says so, when somebody packs it. */
	bool is_cut = size < largest && size < size_told(head);
	if ((largest == 0 || is_ours) && !is_cut) {
		s->largest = size;
		return BATON_OK;
	}
	return fail(BATON_GONE,
	            "store %s was cut off or overwritten while it was open; it had %lld bytes and "
	            "has %lld: a copy made by baton backup can take its place",
	            s->path, (long long)largest, (long long)size);
}
