/* Holds leases of a store for a test: lessee STORE OWNER SUBJECT..., until its input ends. */
#include <inttypes.h>
#include <stdio.h>

#include <baton.h>

static int complain(void)
{
	fprintf(stderr, "%s\n", baton_err_detail());
	return 1;
}

int main(int argc, char **argv)
{
	const struct baton_store_options options = {
		.where = baton_str_z(argc > 1 ? argv[1] : ""),
		.owner = baton_str_z(argc > 2 ? argv[2] : ""),
	};
	struct baton_store *store;
	if (baton_store_open(&options, &store) != BATON_OK)
		return complain();
	for (int i = 3; i < argc; i++) {
		const struct baton_lease_ask ask = {
			.subject = baton_str_z(argv[i]),
			.ttl = baton_duration_s(3600),
		};
		struct baton_lease_answer answer;
		if (baton_lease_claim(store, &ask, 1, &answer) != BATON_OK)
			return complain();
		printf("%" PRIu64 "\n", answer.err == BATON_OK ? answer.lease.fence.v : 0);
	}
	fflush(stdout);
	while (getchar() != EOF)
		;
	baton_store_close(store);
	return 0;
}
