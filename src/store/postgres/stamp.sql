-- Says that the tables are those of the newest version, where these statements are run by hand.
-- What there is one of is made when there is nothing yet; where it is, whoever opens it first
-- finds out.
INSERT INTO baton.state(one, version, name, made, runner, place) SELECT 1, {version},
 decode(replace(gen_random_uuid()::text, '-', ''), 'hex'),
 (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, ''
 ON CONFLICT (one) DO UPDATE SET version = excluded.version;
