/* What was seen, in all runs together. */
#ifndef SIM_COVER_H
#define SIM_COVER_H

#include <stdint.h>

#define COVER_TABLE(X)                                                        \
	/* what people and faults do */                                       \
	X(PUT, "put")                                                         \
	X(PUT_AGAIN, "put repeated after a lost answer")                      \
	X(CANCEL_REMOVED, "cancelled while it waits")                         \
	X(CANCEL_TOLD, "cancelled while it runs")                             \
	X(PAUSE, "queue paused")                                              \
	X(RESUME, "queue resumed")                                            \
	X(JOIN, "runner joins")                                               \
	X(RESTART, "runner started again")                                    \
	X(STOP, "runner stopped")                                             \
	X(RETIRE, "runner leaves for good")                                   \
	X(DETACH_HAND, "detached by hand")                                    \
	X(DETACH_AGAIN, "detached by hand while it reattaches")               \
	X(ATTACH_HAND, "attached by hand")                                    \
	X(WISH_WORK, "asked to work")                                         \
	X(WISH_DRAIN, "asked to drain")                                       \
	X(WISH_DETACH, "asked to detach")                                     \
	X(REPLACE, "replaced by a second one")                                \
	X(REPLACED, "ended for another of its name")                          \
	X(CRASH, "crash")                                                     \
	X(POISON, "crash by the work itself")                                 \
	X(FREEZE_SHORT, "freeze shorter than ttl")                            \
	X(FREEZE_LONG, "freeze longer than ttl")                              \
	X(ORPHAN, "guardian killed")                                          \
	X(STEP_BACK, "wall clock set back")                                   \
	X(STEP_AHEAD, "wall clock set ahead")                                 \
	X(LOST, "request lost")                                               \
	X(DEAF, "answer lost")                                                \
	X(TWICE, "request done twice")                                        \
	X(HOLE, "black hole")                                                 \
	X(SLOW, "slow network")                                               \
	X(BUSY, "store busy")                                                 \
	X(ERROR, "store error")                                               \
	X(HELD, "waited for a user's transaction")                            \
	X(HELD_LONG, "gave up on a user's transaction")                       \
	X(BEAT_LOST, "beat lost")                                             \
	X(BEAT_DEAF, "answer to a beat lost")                                 \
	X(DEAD_EXEC, "request of a dead runner done")                         \
	/* what runners do */                                                 \
	X(SUSPECT, "attached to suspect")                                     \
	X(CLEARED, "suspect to attached")                                     \
	X(ATTACHED_DETACHED, "attached to detached")                          \
	X(SUSPECT_DETACHED, "suspect to detached")                            \
	X(REATTACHED, "detached to attached")                                 \
	X(WHY_STORAGE, "detached: storage error")                             \
	X(WHY_GUARDIAN, "detached: guardian lost")                            \
	X(WHY_STREAK, "detached: failure streak")                             \
	X(WHY_EXPIRED, "detached: lease expired")                             \
	X(WHY_MANUAL, "detached: by hand")                                    \
	X(REGISTER, "registered")                                             \
	X(REREGISTER, "registered anew by the same process")                  \
	X(NAME_TAKEN, "name taken")                                           \
	X(NAME_DYING, "name taken by one whose handlers live")                \
	X(TAKEOVER_DEATH, "takeover by death")                                \
	X(TAKEOVER_SILENCE, "takeover by silence")                            \
	X(TAKEOVER_OWN, "takeover of what was registered without an answer")  \
	X(TAKEOVER_HALF, "takeover that goes no further than the beat")       \
	X(TAKEOVER_DIES, "takeover in the middle of which its runner dies")   \
	X(TAKEOVER_LATE, "takeover refused")                                  \
	X(LOST_NOTICED, "registration lost")                                  \
	X(SETTLE, "settle")                                                   \
	X(TAKE, "shard taken")                                                \
	X(TAKE_YIELD, "shard taken by another first")                         \
	X(GIVE, "shard handed over")                                          \
	X(DRAIN, "handler stopped in a shard that is handed over")            \
	X(LEAVE, "left")                                                      \
	X(UNANSWERED, "ended without an answer of the store")                 \
	X(UNTOLD, "ended though the store could not be told")                 \
	X(NOTE, "noted what was asked of it")                                 \
	X(TELL, "told what it is at")                                         \
	X(PROVE, "proved")                                                    \
	X(PROBE, "probed")                                                    \
	/* what becomes of work */                                            \
	X(COMPLETE, "completed")                                              \
	X(COMPLETE_AGAIN, "completion repeated")                              \
	X(FAIL, "failed")                                                     \
	X(REJECT, "rejected")                                                 \
	X(ABANDON, "given back")                                              \
	X(SNOOZE, "snoozed")                                                  \
	X(EMIT, "emitted")                                                    \
	X(REFUSED, "end refused")                                             \
	X(KEY, "held a key")                                                  \
	X(KEY_SHARED, "shared a key")                                         \
	X(KEY_SITES, "held a key on several hosts, or in several processes")  \
	X(KEY_CLASSED, "held a key that queues have in common")               \
	X(WHY_CLASSED, "waited for a key that another queue held")            \
	X(KEY_TTL, "ended for having held a key for too long")                \
	X(GUEST, "claimed with a lane and a key")                             \
	X(SEVERAL, "claimed with several keys")                               \
	X(BOUND, "refused for those who wait for its key")                    \
	X(BOUND_GUEST, "refused so with a lane, or several keys")             \
	X(BOUND_SITE, "refused so where its key counts in places")            \
	X(BOUND_CLASSED, "refused, since too many of a class wait for a key") \
	X(SKIPPED, "skipped for another of its key")                          \
	X(SKIPPED_ELSEWHERE, "skipped for one in another queue")              \
	X(RATED, "started a key that has a rate")                             \
	X(RATED_SITE, "started a key that has one in each place")             \
	X(RATED_CLASSED, "started one whose rate is that of a class")         \
	X(PASSED, "claimed while another key waited")                         \
	X(JOINED, "several in one claim")                                     \
	X(CHECKPOINT, "asked for more in the middle of a run")                \
	X(MORE, "given more in the middle of a run")                          \
	X(MORE_BACK, "what a run would have got went back")                   \
	X(MORE_DONE, "completed with what it took meanwhile")                 \
	X(WHY_PAUSED, "said to wait for its queue")                           \
	X(WHY_DELAYED, "said to wait for its time")                           \
	X(WHY_RETRY, "said to wait for its next attempt")                     \
	X(WHY_DUE, "said to be due, but not seen to yet")                     \
	X(WHY_LOOK, "looks at all that waits")                                \
	X(WHY_BEHIND, "said to wait for one before it")                       \
	X(WHY_KEY, "said to wait for its key")                                \
	X(WHY_SITE, "said to wait for its key where it counts")               \
	X(WHY_GUEST, "said to wait for its key in a lane")                    \
	X(WHY_RATE, "said to wait for the rate of its key")                   \
	X(WHY_RATE_SITE, "said to wait for that of its key where it counts")  \
	X(STALL_NOBODY, "said to wait for any runner")                        \
	X(STALL_DETACHED, "said to wait for a detached runner")               \
	X(STALL_TRANSIT, "said to wait for a shard on its way")               \
	X(STALL_TURN, "said to wait for its turn")                            \
	X(DEAD, "dead")                                                       \
	X(KILL_FROZEN, "handler killed at the deadline of a frozen runner")   \
	X(KILL_LIVE, "handler killed at the deadline of a live runner")       \
	X(KILL_DEAD, "handler killed after its runner")                       \
	X(KILL_GRACE, "handler killed for not stopping")                      \
	X(START_LATE, "start refused by the guardian")

enum covered {
#define X(name, text) COVER_##name,
	COVER_TABLE(X)
#undef X
	COVER_END
};

struct cover {
	uint64_t counts[COVER_END];
};

const char *cover_name(enum covered what);

#endif
