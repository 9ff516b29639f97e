-- Work with a lane and a key. It stands in the line of its lane; `guest` is the name of the line of
-- its key, and of claims of it. The first of a lane that could be claimed but for its key `asks`
-- for that, and one that waits for its next attempt `keeps` it, if its queue wants it so.
ALTER TABLE baton.queue ADD COLUMN guests bool NOT NULL DEFAULT false; -- it has had some
ALTER TABLE baton.batch ADD COLUMN guest text COLLATE "C",
 ADD COLUMN asks bool NOT NULL DEFAULT false, ADD COLUMN keeps bool NOT NULL DEFAULT false;
ALTER TABLE baton.claim ADD COLUMN guest text COLLATE "C";
ALTER TABLE baton.staged ADD COLUMN guest text COLLATE "C";
CREATE INDEX batch_asks ON baton.batch(queue, guest, seq) WHERE asks;
CREATE INDEX batch_guest ON baton.batch(queue, guest) WHERE head AND guest IS NOT NULL;
CREATE INDEX batch_keeps ON baton.batch(queue, guest, seq) WHERE keeps;
CREATE INDEX claim_guest ON baton.claim(queue, guest) WHERE guest IS NOT NULL;
