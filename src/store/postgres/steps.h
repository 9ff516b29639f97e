/* The steps from no tables to those of this version, as SQL: made from the files in steps/. */
#ifndef POSTGRES_STEPS_H
#define POSTGRES_STEPS_H

/* Each leads from the version before it to the next. Those that were released never change. */
extern const char *const pg_steps[];
extern const int pg_step_count;

#endif
