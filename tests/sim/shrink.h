/* Makes a run that goes wrong smaller. */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "sim/sim.h"

/* Takes away from `plan`, whose run went wrong, what it still goes wrong without. */
void shrink(struct world *w, struct plan *plan);

#endif
