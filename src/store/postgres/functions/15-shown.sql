CREATE OR REPLACE VIEW baton.jobs AS SELECT coalesce(b.born, b.seq) AS id, q.name AS queue,
 CASE WHEN left(b.lane, 1) IN (chr(1), chr(2)) THEN NULL ELSE b.lane END AS lane,
 CASE WHEN b.state = 6 AND b.rival IS NOT NULL THEN 'skipped' ELSE
  (ARRAY['ready', 'delayed', 'retry', 'claimed', 'dead', 'done'])[b.state] END AS state,
 9 - b.rank AS priority, b.attempts, to_timestamp(b.put_at / 1000.0) AS put_at,
 CASE WHEN b.state IN (2, 3) THEN to_timestamp(b.due / 1000.0) END AS due,
 convert_from(b.error, 'UTF8') AS error, b.payload,
 split_part(substr(CASE WHEN baton.is_key(b.lane) THEN split_part(b.lane, chr(3), 1)
  ELSE b.guest END, 2), chr(1), 1) AS key,
 CASE WHEN b.state = 6 THEN b.rival END AS skipped_for,
 string_to_array(substr(CASE WHEN baton.is_key(b.lane) THEN split_part(b.lane, chr(3), 1)
  ELSE b.guest END, 2), chr(1)) AS keys
 FROM (SELECT seq, born, queue, lane, state, rank, attempts, put_at, due, error, payload,
 rival, guest FROM baton.batch UNION ALL SELECT seq, born, queue, lane, state, rank, attempts,
 put_at, due, error, payload, rival, guest FROM baton.member) b
 JOIN baton.queue q ON q.id = b.queue;
DO $$ BEGIN
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'waiting') THEN
  CREATE TRIGGER waiting AFTER UPDATE ON baton.batch REFERENCING OLD TABLE AS gone
   NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION baton.on_waiting();
  CREATE TRIGGER waiting_new AFTER INSERT ON baton.batch REFERENCING NEW TABLE AS fresh
   FOR EACH STATEMENT EXECUTE FUNCTION baton.on_waiting();
  CREATE TRIGGER waiting_gone AFTER DELETE ON baton.batch REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION baton.on_waiting();
  CREATE TRIGGER wish AFTER UPDATE ON baton.batch FOR EACH ROW WHEN (NEW.guest IS NOT NULL
   AND ((NEW.state = 1) <> (OLD.state = 1) OR NEW.seq <> OLD.seq))
   EXECUTE FUNCTION baton.on_wish();
  CREATE TRIGGER wish_new AFTER INSERT ON baton.batch FOR EACH ROW
   WHEN (NEW.guest IS NOT NULL AND NEW.state = 1) EXECUTE FUNCTION baton.on_wish();
  CREATE TRIGGER wish_gone AFTER DELETE ON baton.batch FOR EACH ROW
   WHEN (OLD.guest IS NOT NULL AND OLD.state = 1) EXECUTE FUNCTION baton.on_wish();
  CREATE TRIGGER bound AFTER UPDATE ON baton.queue FOR EACH ROW
   WHEN ((NEW.key_waiting_max > 0) <> (OLD.key_waiting_max > 0))
   EXECUTE FUNCTION baton.on_bound();
  CREATE TRIGGER offered AFTER UPDATE ON baton.claim FOR EACH ROW WHEN (left(NEW.lane, 1) = chr(1)
   AND (NEW.offered OR OLD.offered)) EXECUTE FUNCTION baton.on_offered();
  CREATE TRIGGER offered_gone AFTER DELETE ON baton.claim FOR EACH ROW
   WHEN (left(OLD.lane, 1) = chr(1) AND OLD.offered) EXECUTE FUNCTION baton.on_offered();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.queue'::regclass
   AND tgname = 'class') THEN
  CREATE TRIGGER class AFTER UPDATE ON baton.queue FOR EACH ROW
   WHEN (NEW.key_class <> OLD.key_class) EXECUTE FUNCTION baton.on_class();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'several') THEN
  CREATE TRIGGER several AFTER UPDATE ON baton.batch FOR EACH ROW
   WHEN (strpos(substr(NEW.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_several();
  CREATE TRIGGER several_gone AFTER DELETE ON baton.batch FOR EACH ROW
   WHEN (strpos(substr(OLD.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_several();
  CREATE TRIGGER several AFTER INSERT ON baton.claim FOR EACH ROW
   WHEN (strpos(substr(NEW.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_held();
  CREATE TRIGGER several_gone AFTER DELETE ON baton.claim FOR EACH ROW
   WHEN (strpos(substr(OLD.guest, 2), chr(1)) > 0) EXECUTE FUNCTION baton.on_held();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'line') THEN
  CREATE TRIGGER line AFTER UPDATE ON baton.batch FOR EACH ROW WHEN (NEW.line AND NOT OLD.line)
   EXECUTE FUNCTION baton.on_line();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.staged'::regclass
   AND tgname = 'staged') THEN
  CREATE CONSTRAINT TRIGGER staged AFTER INSERT ON baton.staged
   DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION baton.on_commit();
 END IF;
 IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'baton.batch'::regclass
   AND tgname = 'head') THEN
  CREATE TRIGGER head AFTER UPDATE ON baton.batch FOR EACH ROW WHEN (NEW.head AND (NOT OLD.head
   OR NEW.pool <> OLD.pool OR coalesce(NEW.place, NEW.seq * 2) < coalesce(OLD.place,
   OLD.seq * 2))) EXECUTE FUNCTION baton.on_head();
  CREATE TRIGGER placed AFTER INSERT ON baton.batch FOR EACH ROW WHEN (NEW.head
   AND NEW.place IS NOT NULL) EXECUTE FUNCTION baton.on_head();
 END IF;
END $$;
-- Who may what. Roles belong to a whole server, so they may be there already.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA baton FROM PUBLIC;
DO $$ DECLARE r text; BEGIN
 FOREACH r IN ARRAY ARRAY['baton_put', 'baton_runner', 'baton_operator'] LOOP
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN
   BEGIN EXECUTE format('CREATE ROLE %I NOLOGIN', r);
   EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
   END;
  END IF;
 END LOOP;
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT USAGE ON SCHEMA baton TO baton_put, baton_runner, baton_operator;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA baton TO baton_runner,
   baton_operator;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA baton TO baton_runner, baton_operator;
  GRANT EXECUTE ON FUNCTION baton.put(text, bytea, text, jsonb),
   baton.put(text, text, text, jsonb), baton.put(text, jsonb, text, jsonb),
   baton.put_many(text, bytea[], text, jsonb), baton.put_many(text, text[], text, jsonb),
   baton.put_many(text, jsonb[], text, jsonb) TO baton_put;
 END IF;
END $$;
