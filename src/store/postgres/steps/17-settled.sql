-- baton.settle() reads once up to where the line of a lane is empty, and baton.put() the counts of
-- a queue only if they matter: functions alone.
DO $$ BEGIN NULL; END $$;
