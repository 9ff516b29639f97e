/* What repeated measurements say: the middle of them, and how sure that is. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>

/* The most measurements of one thing. */
#define STATS_MAX 64

struct spread {
	double median;
	double low; /* the true median lies between low and high with a probability of 95 % */
	double high;
};

/* The spread of 1 to STATS_MAX values. The interval follows from their order alone, whatever
 * their distribution: below six values it is the smallest and the largest and less certain than
 * it says; beyond eight an outlier on either side no longer counts. */
struct spread spread_of(const double *values, size_t count);

/* (high - low) / median. */
double spread_width(struct spread s);

#endif
