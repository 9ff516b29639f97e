-- What becomes of work whose key others have. What was skipped is stored as done, with the id of
-- the batch that it gave way to.
ALTER TABLE baton.queue ADD COLUMN on_conflict int NOT NULL DEFAULT 1,
 ADD COLUMN key_waiting_max bigint NOT NULL DEFAULT 0;
ALTER TABLE baton.batch ADD COLUMN rival bigint;
