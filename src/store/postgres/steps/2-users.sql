-- For users' own transactions. What they ask for is staged, and done when they commit: only then
-- are the locks of queues taken, and numbers given, so that nobody waits for them.
CREATE UNLOGGED TABLE baton.staged(
 id bigint NOT NULL, xid xid8 NOT NULL, what text NOT NULL, queue text COLLATE "C"
 NOT NULL, lane text COLLATE "C", rank smallint, flags smallint, due bigint, grp text,
 payload bytea, head bigint, fence bigint, token bytea);
CREATE INDEX staged_xid ON baton.staged(xid);
