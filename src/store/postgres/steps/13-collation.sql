-- Keys are compared as lanes are in all other tables. With another collation than theirs an index
-- cannot be used, and whoever looked for one key of a queue read all of them.
ALTER TABLE baton.rate ALTER COLUMN lane TYPE text COLLATE "C";
ALTER TABLE baton.pace ALTER COLUMN lane TYPE text COLLATE "C";
