/* Many ids at once. */
#ifndef BASE_IDS_H
#define BASE_IDS_H

#include <stddef.h>

#include <baton/err.h>
#include <baton/id.h>

/* As baton_id_random(), for several: the system is asked once for each 16 of them. */
enum baton_err ids_random(struct baton_id *ids, size_t count);

#endif
