-- Concurrency keys. What has a key and no lane is in a line whose name is a character 1, which no
-- lane's name has, and the key. A batch that keeps its key until its next attempt holds it.
ALTER TABLE baton.queue ADD COLUMN key_limit bigint NOT NULL DEFAULT 1,
 ADD COLUMN hold_on_retry int NOT NULL DEFAULT 1;
