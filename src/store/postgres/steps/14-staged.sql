-- What is staged is found by its own number, and by its source key.
DROP INDEX baton.staged_xid;
CREATE INDEX staged_xid ON baton.staged(xid, id);
CREATE INDEX staged_key ON baton.staged(xid, key) WHERE key IS NOT NULL;
