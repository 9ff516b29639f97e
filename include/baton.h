/* Everything that libbaton offers. Each concept also has a header of its own. */
#ifndef BATON_H
#define BATON_H

#include <baton/admit.h>
#include <baton/alloc.h>
#include <baton/backend.h>
#include <baton/batch.h>
#include <baton/broker.h>
#include <baton/claim.h>
#include <baton/client.h>
#include <baton/clock.h>
#include <baton/detach.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/gate.h>
#include <baton/guardian.h>
#include <baton/id.h>
#include <baton/key.h>
#include <baton/lease.h>
#include <baton/log.h>
#include <baton/metrics.h>
#include <baton/owner.h>
#include <baton/policy.h>
#include <baton/progress.h>
#include <baton/queue.h>
#include <baton/runner.h>
#include <baton/schedule.h>
#include <baton/shard.h>
#include <baton/singleton.h>
#include <baton/stall.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>
#include <baton/version.h>
#include <baton/wake.h>
#include <baton/wakeup.h>
#include <baton/watch.h>
#include <baton/work.h>

#endif
