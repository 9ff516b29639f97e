/* What repeated measurements say. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;
	return (x > y) - (x < y);
}

/* How many of the smallest values lie outside of the interval. Each value is below the true
 * median with probability 1/2, so the chance that at most k of them are is a sum of binomials;
 * both sides share 5 %. */
static size_t outside(size_t count)
{
	double chance = pow(0.5, (double)count);
	double sum = chance;
	size_t k = 0;
	while (sum <= 0.025) {
		chance *= (double)(count - k) / (double)(k + 1);
		sum += chance;
		k++;
	}
	return k > 0 ? k - 1 : 0;
}

struct spread spread_of(const double *values, size_t count)
{
	double sorted[STATS_MAX];
	memcpy(sorted, values, count * sizeof *values);
	qsort(sorted, count, sizeof *sorted, by_value);
	size_t k = outside(count);
	return (struct spread){
		.median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
		.low = sorted[k],
		.high = sorted[count - 1 - k],
	};
}

double spread_width(struct spread s)
{
	return (s.high - s.low) / s.median;
}
