-- Queues that name the same class have their keys in common.
ALTER TABLE baton.queue ADD COLUMN key_class text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX queue_class ON baton.queue(key_class) WHERE key_class <> '';
