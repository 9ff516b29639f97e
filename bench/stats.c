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

void stats_sort(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
}

/* The chance that exactly k of `count` values are below the quantile: each of them is with
 * probability q. */
static double chance_of(size_t k, size_t count, double q)
{
	double n = (double)count;
	double ways = lgamma(n + 1) - lgamma((double)k + 1) - lgamma(n - (double)k + 1);
	return exp(ways + (double)k * log(q) + (n - (double)k) * log(1 - q));
}

/* The true quantile is below the value of index i iff at most i values are below the quantile. Both
 * sides of the interval share 5 %. */
struct spread quantile_of(const double *sorted, size_t count, double q)
{
	double place = q * (double)(count - 1);
	size_t at = (size_t)place;
	size_t next = at + 1 < count ? at + 1 : at;
	double part = place - (double)at;
	struct spread s = {
		.median = sorted[at] * (1 - part) + sorted[next] * part,
		.low = sorted[0],
		.high = sorted[count - 1],
	};
	double below = 0;
	for (size_t i = 0; i < count; i++) {
		below += chance_of(i, count, q);
		if (below <= 0.025)
			s.low = sorted[i];
		if (1 - below <= 0.025) {
			s.high = sorted[i];
			break;
		}
	}
	return s;
}

struct spread spread_of(const double *values, size_t count)
{
	double sorted[STATS_MAX];
	memcpy(sorted, values, count * sizeof *values);
	stats_sort(sorted, count);
	return quantile_of(sorted, count, 0.5);
}

double spread_width(struct spread s)
{
	return (s.high - s.low) / s.median;
}
