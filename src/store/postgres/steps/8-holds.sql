-- Before that time nothing is due in the queue, and no claim is over: see baton.since().
ALTER TABLE baton.tally ADD COLUMN tended bigint NOT NULL DEFAULT 0;
