/* The system's time zone files. */
#ifndef BASE_ZONE_FILE_H
#define BASE_ZONE_FILE_H

#include <baton/err.h>
#include <baton/str.h>

#include "base/buf.h"

/* Where Debian's tzdata has them. */
#define ZONE_FILE_FOLDER "/usr/share/zoneinfo"

/* The largest of them has 4 KiB. */
#define ZONE_FILE_MAX 65536

/* Makes `ret` hold the file of the zone `name`, such as Europe/Berlin, below `folder`. What is in
 * it is not looked at. `ret` is the caller's, with a maximum of at least ZONE_FILE_MAX, and is
 * empty after an error.
 *
 * BATON_INVALID: no name of a zone (1 to 255 bytes: letters, digits, _ - + and . between slashes;
 * no part is empty or begins with a dot), nothing of that name, or no file, or one above
 * ZONE_FILE_MAX. BATON_NO_MEMORY, BATON_SYSTEM. */
enum baton_err zone_file_read(const char *folder, struct baton_str name, struct buf *ret);

#endif
