/* Two workers, one order: who holds it, who yields, and how it is handed over. */
#include <stdio.h>

#include <baton.h>

int main(void)
{
	struct baton_gate *gate;
	if (baton_gate_new(NULL, &gate) != BATON_OK) {
		fprintf(stderr, "%s\n", baton_err_detail());
		return 1;
	}

	struct baton_gate_key order = {.text = BATON_STR("order-42")};
	struct baton_gate_ask ada = {.keys = &order, .count = 1};
	struct baton_gate_ask ben = {.keys = &order, .count = 1};
	if (baton_id_random(&ada.run) != BATON_OK || baton_id_random(&ben.run) != BATON_OK)
		return 1;

	baton_fence fence;
	if (baton_gate_acquire(gate, &ada, &fence, NULL) == BATON_OK)
		printf("ada holds it, fence %llu\n", (unsigned long long)fence.v);

	struct baton_gate_yield why;
	if (baton_gate_acquire(gate, &ben, &fence, &why) == BATON_YIELD)
		printf("ben yields to the holder of fence %llu\n",
		       (unsigned long long)why.holder.fence.v);

	baton_gate_release(gate, &ada);
	if (baton_gate_acquire(gate, &ben, &fence, NULL) == BATON_OK)
		printf("ben holds it, fence %llu\n", (unsigned long long)fence.v);

	baton_gate_release(gate, &ben);
	baton_gate_free(gate);
	return 0;
}
