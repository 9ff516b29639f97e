/* A descriptor that a broker keeps, as it is told of. */
#include "wire/stored.h"

#include "base/fail.h"
#include "wire/convert.h"
#include "wire/hello.h"

void convert_stored_out(const struct wire_stored *all, size_t count, Baton__Wire__Stored *pbs,
                        Baton__Wire__Stored **ret)
{
	for (size_t i = 0; i < count; i++) {
		Baton__Wire__Stored init = BATON__WIRE__STORED__INIT;
		pbs[i] = init;
		pbs[i].service = pack_data(all[i].service);
		pbs[i].name = pack_data(all[i].name);
		pbs[i].left_ms = all[i].left_ms;
		ret[i] = &pbs[i];
	}
}

enum baton_err convert_stored_in(Baton__Wire__Stored *const *pbs, size_t count, size_t max,
                                 struct arena *arena, const struct wire_stored **ret)
{
	enum baton_err e = BATON_OK;
	if (count > max)
		return fail(BATON_INVALID, "%zu descriptors that are kept; %zu are allowed", count,
		            max);
	struct wire_stored *all = arena_take(arena, count + 1, sizeof *all);
	if (!all)
		return fail_memory((count + 1) * sizeof *all, "descriptors that are kept");
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		all[i].left_ms = pbs[i]->left_ms;
		e = pack_text("service", pbs[i]->service, WIRE_SERVICE_MAX, &all[i].service);
		if (e == BATON_OK)
			e = pack_text("name", pbs[i]->name, WIRE_STORED_NAME_MAX, &all[i].name);
	}
	*ret = all;
	return e;
}
