-- Work with several keys. The `guest` of such a batch, and of a claim of it, has the names of all
-- their lines, one after the other; if it has no lane, it is in one of its own, a byte 2 and its
-- id.
-- Each key for which one asks, and whether it has the head of it:
CREATE TABLE baton.ask(
 queue int NOT NULL, line text COLLATE "C" NOT NULL, seq bigint NOT NULL, head bool NOT NULL,
 PRIMARY KEY (queue, line, seq))
 WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX ask_head ON baton.ask(queue, line) WHERE head;
-- Each key that such a claim holds, or, with the fence 0, that a batch keeps:
CREATE TABLE baton.hold(
 queue int NOT NULL, line text COLLATE "C" NOT NULL, seq bigint NOT NULL, fence bigint NOT NULL,
 PRIMARY KEY (queue, line, seq, fence))
 WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
