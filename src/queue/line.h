/* The line that a batch stands in: that of its lane, that of its key, or none. One that has both
 * stands in its lane's, and is a guest in that of its key when it is the first of its lane. One
 * that has several keys is a guest in the line of each; without a lane it is the only one of a lane
 * of its own. */
#ifndef QUEUE_LINE_H
#define QUEUE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/batch.h>
#include <baton/policy.h>

/* A line has a name that stores keep: the lane's, or a byte 1, which no lane's name can have, and
 * the key. Empty: there is no line. */
#define LINE_NAME_MAX (BATON_NAME_MAX + 1 + LINE_SITED_MAX)
#define LINE_KEYED '\1'
#define LINE_OWN '\2' /* and the id, for a lane of one batch alone */

/* Where keys count for each host, or each process, a key has a line in each shard: behind the key
 * there is this byte, and the number of the shard. */
#define LINE_SITED '\3'
#define LINE_SITED_MAX 5

/* Several keys stand in one text, in the order of their bytes, with a byte 1 between them: below
 * the public functions `key` of a batch is that, and `keys` is empty. */
#define LINE_KEYS_MAX ((size_t)BATON_KEYS_MAX * LINE_NAME_MAX)

bool keys_are_several(struct baton_str key);

/* Takes the first of them from *rest. False: there is none. */
bool keys_next(struct baton_str *rest, struct baton_str *ret);

/* How many there are. */
size_t keys_count(struct baton_str key);

/* The keys of a batch as it was put, as such a text: each once. */
struct baton_str keys_join(const struct baton_batch *b, char text[LINE_KEYS_MAX]);

/* The name of the line of a batch with that id in such a queue. It may be in `text`. */
struct baton_str line_name(const struct baton_batch *b, uint64_t id,
                           const struct baton_queue_policy *policy, char text[LINE_NAME_MAX]);

/* Whether the batch is a guest in the lines of its keys. */
bool line_has_guest(const struct baton_batch *b);

bool line_is_keyed(struct baton_str name);

/* Whether it is that of a key in one shard; then *ret_shard (may be NULL) is its number. */
bool line_is_sited(struct baton_str name, uint32_t *ret_shard);

/* The line in that shard of the key that the line is of, in `text`. */
struct baton_str line_in_shard(struct baton_str line, uint64_t shard, char text[LINE_NAME_MAX]);

/* The name without that: what is counted together, of claims in one place. */
struct baton_str line_counted(struct baton_str name);

/* The name of the line of that key, in `text`; empty: there is no key. */
struct baton_str line_of_key(struct baton_str key, char text[LINE_NAME_MAX]);

/* Of one key or several: the names of their lines, one after the other, as stores keep them of
 * guests. */
struct baton_str lines_of_keys(struct baton_str keys, char text[LINE_KEYS_MAX]);

/* Takes the first of such names from *rest. False: there is none. */
bool lines_next(struct baton_str *rest, struct baton_str *ret);

/* What the name says: the lane, or the key; empty: none. */
struct baton_str line_lane(struct baton_str name);
struct baton_str line_key(struct baton_str name);

/* Whether one more claim of a key may begin, when it is held `holds` times: by claims that are
 * live, and by work that keeps it until its next attempt. Of a key that counts in each place the
 * line has always room: see site.h. */
bool key_has_room(const struct baton_queue_policy *policy, uint64_t holds);

/* Whether work that has a key waits for it, and nothing else is said about keys, which are those of
 * one queue. */
bool key_is_usual(const struct baton_queue_policy *policy);

/* Where the first of a line stands among those of others: at its own number, or, if keys take
 * turns, behind the number that its line has got since (`turn`; 0: none): a new one whenever a
 * claim is taken from it, and what line_turn() says when somebody enters it. Twice that number, and
 * one more for those behind it; of two in the same place the one with the lower number comes
 * first. */
uint64_t line_place(struct baton_str name, const struct baton_queue_policy *policy, uint64_t seq,
                    uint64_t turn);
bool line_takes_turns(struct baton_str name, const struct baton_queue_policy *policy);

/* A line that takes turns, before a batch enters it. */
struct line_before {
	bool idle;      /* nobody is in it, or has its key        */
	uint64_t first; /* of those that wait in it; 0: none does */
	uint64_t turn;
};

/* Its turn when a batch with that number has entered it, if `last` was given out last. One that was
 * not put just now is no way to the front: a line that begins with it does so behind all that
 * wait, and one in which others wait stays where it is. */
uint64_t line_turn(const struct line_before *line, uint64_t seq, uint64_t last);

/* How long a claim of that line holds its key without renewal; 0: no limit, or there is none. */
struct baton_duration line_hold(struct baton_str name, const struct baton_queue_policy *policy);

/* For how long such a claim is given, or renewed: as asked for, but no longer than it holds its
 * key. What does not expire, since somebody owns it, does not. */
struct baton_duration line_ttl(struct baton_str name, const struct baton_queue_policy *policy,
                               struct baton_duration asked);

/* What becomes of a batch that has just become ready, and of those of its key. */
enum key_conflict {
	KEY_NO_CONFLICT = 1,  /* all stay                                                       */
	KEY_SKIPS_TO_HOLDER,  /* it is skipped, for the first that holds the key, or will        */
	KEY_SKIPS_TO_WAITING, /* it is skipped, for the last that waits                          */
	KEY_SKIPS_WAITING,    /* the last that waits is skipped, for it                          */
	KEY_REPLACES          /* the oldest of all is skipped for it, once it has stopped    */
};

/* `holds` as above, but those that were asked to stop do not count against one that replaces others
 * (BATON_CONFLICT_REPLACE); `waiting` others are ready, or can be taken because their claim has
 * expired. There may be more of these than are counted, if the limit and one more are. */
enum key_conflict key_conflict(const struct baton_queue_policy *policy, uint64_t holds,
                               uint64_t waiting);

/* Where a batch waits for its next attempt. */
enum line_retry {
	LINE_RETRY_KEEP = 1, /* in its place: nobody passes, or it goes on holding its key        */
	LINE_RETRY_PASS,     /* outside of the line, and comes back to its place                  */
	LINE_RETRY_BEHIND /* outside of the line, and comes back behind those that wait now     */
};

enum line_retry line_on_retry(struct baton_str name, const struct baton_queue_policy *policy);

/* Whether a guest keeps its key while it waits for its next attempt, wherever that is. */
bool guest_keeps_key(const struct baton_queue_policy *policy);

/* Whether a batch that is dead holds up its line. */
bool line_dead_holds(struct baton_str name, const struct baton_queue_policy *policy);

/* Which retry policy holds for it, when its batch has none of its own. */
const struct baton_retry *line_retry_policy(struct baton_str name,
                                            const struct baton_queue_policy *policy);

#endif
