-- Who sleeps leaves a row; who commits takes it away and wakes them all. Nobody waits for such a
-- row, not even while a user's transaction has it.
CREATE UNLOGGED TABLE baton.sleeper(since bigint NOT NULL);
-- Source keys.
ALTER TABLE baton.staged ADD COLUMN key bytea, ADD COLUMN content bytea;
