/* The guardian of many commands: the helper that a runner has beside it. */
#ifndef GUARDIAN_WARDEN_H
#define GUARDIAN_WARDEN_H

/* Is the guardian, in a process of its own with the descriptors of errand.h, until the runner has
 * gone and nothing lives that descends from this process. Returns the status to exit with. */
int warden_live(void);

#endif
