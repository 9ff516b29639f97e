/* What somebody may have meant who mistyped a name. */
#include <stdint.h>
#include <string.h>

#include "suggest.h"

#define WORD_MAX 63
#define TYPOS_MAX 2

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters have to be added, removed, replaced or swapped with their neighbour to turn one
 * word into the other. Words longer than WORD_MAX are as far from all others as can be. */
static size_t word_distance(const char *a, const char *b)
{
	size_t rows = strlen(a) + 1;
	size_t columns = strlen(b) + 1;
	if (rows > WORD_MAX + 1 || columns > WORD_MAX + 1)
		return SIZE_MAX;

	/* d[i][j]: from the first i letters of a to the first j letters of b. */
	size_t d[WORD_MAX + 1][WORD_MAX + 1] = {{0}};
	for (size_t i = 1; i < rows; i++)
		d[i][0] = i;
	for (size_t j = 1; j < columns; j++)
		d[0][j] = j;
	for (size_t i = 1; i < rows; i++) {
		for (size_t j = 1; j < columns; j++) {
			size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			d[i][j] = least(replaced, least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[rows - 1][columns - 1];
}

void suggestion_consider(struct suggestion *s, const char *name)
{
	size_t distance = word_distance(s->typed, name);
	if (distance > TYPOS_MAX || distance >= strlen(s->typed))
		return;
	if (s->nearest && distance >= s->distance)
		return;
	s->nearest = name;
	s->distance = distance;
}
