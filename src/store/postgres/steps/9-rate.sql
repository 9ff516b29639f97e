-- How often keys may start. The last starts of a key, the earliest first; `until` is when it may
-- start again if it may not now, and `over` when all of them have left the window.
ALTER TABLE baton.queue ADD COLUMN key_starts int NOT NULL DEFAULT 0;
ALTER TABLE baton.queue ADD COLUMN key_window bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.queue ADD COLUMN key_ttl bigint NOT NULL DEFAULT 0;
CREATE TABLE baton.rate(queue int NOT NULL, lane text NOT NULL, until bigint, over bigint NOT NULL,
 starts bigint[] NOT NULL, PRIMARY KEY(queue, lane)) WITH (fillfactor = 70);
CREATE INDEX rate_until ON baton.rate(queue, until) WHERE until IS NOT NULL;
CREATE INDEX rate_over ON baton.rate(over) WHERE until IS NULL;
-- How far what is remembered has been looked through, to forget what is old: the last row counts,
-- as in baton.tally. Whoever begins a transaction reads baton.state, so that is not changed for it.
CREATE TABLE baton.sweep(
 n bigint PRIMARY KEY, answers bigint NOT NULL, replies bigint NOT NULL)
 WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE baton.state DROP COLUMN swept, DROP COLUMN swept_reply;
