-- What runners have done, as they tell: not in the row that beats, which is written all the time.
CREATE TABLE baton.report(
 runner bigint PRIMARY KEY REFERENCES baton.runner ON DELETE CASCADE, at bigint NOT NULL,
 report text NOT NULL) WITH (fillfactor = 50);
