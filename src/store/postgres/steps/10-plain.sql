-- Numbers and tokens of claims stay as they are: to compress them, for a few bytes, takes longer
-- than to write the row. It fits into a page.
ALTER TABLE baton.chunk ALTER COLUMN heads SET STORAGE PLAIN,
 ALTER COLUMN fences SET STORAGE PLAIN, ALTER COLUMN tokens SET STORAGE PLAIN;
ALTER TABLE baton.reply ALTER COLUMN heads SET STORAGE PLAIN,
 ALTER COLUMN fences SET STORAGE PLAIN, ALTER COLUMN tokens SET STORAGE PLAIN;
