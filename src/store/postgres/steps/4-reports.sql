-- What runners have done, as they tell: not in the row that beats, which is written all the time.
CREATE TABLE baton.report(
 runner bigint PRIMARY KEY REFERENCES baton.runner ON DELETE CASCADE, at bigint NOT NULL,
 report text NOT NULL) WITH (fillfactor = 50);
DO $$ BEGIN
 IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('baton_put', 'baton_runner',
   'baton_operator')) = 3 THEN
  GRANT SELECT, INSERT, UPDATE, DELETE ON baton.report TO baton_runner, baton_operator;
 END IF;
END $$;
