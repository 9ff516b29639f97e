-- Where keys are counted: 1 in each process, 2 on each host, 3 in the cluster. Unless it is that,
-- the line of a key in a shard has the name of the key's line, a byte 3 and the number of the
-- shard.
ALTER TABLE baton.queue ADD COLUMN key_scope smallint NOT NULL DEFAULT 3;
