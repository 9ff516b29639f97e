-- baton.put() counts who waits for a key in all shards: functions alone.
DO $$ BEGIN NULL; END $$;
