/* A job that must not run twice on this host: hold its name, or say who does. */
#include <stdio.h>

#include <baton.h>

int main(void)
{
	struct baton_fleet *fleet;
	struct baton_fleet_options options = {.owner = BATON_STR("nightly")};
	if (baton_fleet_join(&options, &fleet) != BATON_OK) {
		fprintf(stderr, "%s\n", baton_err_detail());
		return 1;
	}

	struct baton_subject report = BATON_SUBJECT("jobs", "report");
	struct baton_claim_ask ask = {.subject = &report};
	struct baton_claim claim;
	struct baton_claim_holder holder;
	enum baton_err e = baton_claim_try(fleet, &ask, &claim, &holder);
	if (e == BATON_OK) {
		printf("we hold it, fence %llu\n", (unsigned long long)claim.fence.v);
		baton_claim_release(&claim);
	} else if (e == BATON_YIELD) {
		printf("%s (pid %d) holds it\n", holder.owner, (int)holder.pid);
	} else {
		fprintf(stderr, "%s\n", baton_err_detail());
	}

	baton_fleet_leave(fleet);
	return e == BATON_OK || e == BATON_YIELD ? 0 : 1;
}
