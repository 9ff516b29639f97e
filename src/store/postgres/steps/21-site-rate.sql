-- Starts of keys that count for each host, or each process, are in baton.rate, too: the name of
-- those is a byte 3, the place, and the line of the key. Functions alone.
DO $$ BEGIN NULL; END $$;
