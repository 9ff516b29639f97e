-- How often keys may start. The last starts of a key, the earliest first; `until` is when it may
-- start again if it may not now, and `over` when all of them have left the window.
ALTER TABLE baton.queue ADD COLUMN key_starts int NOT NULL DEFAULT 0;
ALTER TABLE baton.queue ADD COLUMN key_window bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.queue ADD COLUMN key_ttl bigint NOT NULL DEFAULT 0;
CREATE TABLE baton.rate(queue int NOT NULL, lane text NOT NULL, until bigint, over bigint NOT NULL,
 starts bigint[] NOT NULL, PRIMARY KEY(queue, lane)) WITH (fillfactor = 70);
CREATE INDEX rate_until ON baton.rate(queue, until) WHERE until IS NOT NULL;
CREATE INDEX rate_over ON baton.rate(over) WHERE until IS NULL;
