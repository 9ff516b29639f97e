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

/* The same for the value below which the part `q` of all values lies, in place of the median.
 * `sorted` has any number of values from 1 on, the smallest first. */
struct spread quantile_of(const double *sorted, size_t count, double q);

/* Puts values in order, the smallest first. */
void stats_sort(double *values, size_t count);

/* (high - low) / median. */
double spread_width(struct spread s);

#endif
