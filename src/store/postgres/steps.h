/* The steps from no tables to those of this version, and the functions, as SQL: made from the files
 * in steps/ and functions/, and stamp.sql. */
#ifndef POSTGRES_STEPS_H
#define POSTGRES_STEPS_H

/* Each leads from the version before it to the next: tables, columns, indexes and what moves data.
 * Those that were released never change. */
extern const char *const pg_steps[];
extern const int pg_step_count;

/* Functions, views, triggers and rights: run after the last step, whatever version was there. */
extern const char pg_functions[];

/* The last statement for whoever runs all of these by hand. */
extern const char pg_stamp[];

#endif
