/* What a store in memory tells those who wait. */
#ifndef STORE_MEMORY_NEWS_H
#define STORE_MEMORY_NEWS_H

#include "store/memory/memory.h"

struct baton_store_news memory_news_of_queue(const struct memory *m, struct baton_str queue);
struct baton_store_news memory_news_of_lane(const struct memory *m, const struct lane *lane);

/* That whoever can claim under the subject of a lease may do so now. False: there is nothing to be
 * claimed under it. */
bool memory_news_of_subject(const struct memory *m, struct baton_str subject,
                            struct baton_store_news *ret);

/* Of a key of a class, on a desk: of the other queues, which are not there. Returns how many, less
 * than BATON_QUEUE_CLASS_MAX. */
size_t memory_news_of_peers(const struct memory *m, const struct lane *lane,
                            struct baton_store_news *ret);

#endif
