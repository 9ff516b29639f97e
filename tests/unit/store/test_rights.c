/* Who may do what in the database of a store: the roles that it has, and that none of them can do
 * more by what he makes himself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "served.h"

/* A user of the server, who may what the role may. */
static PGconn *user_with(const struct bench *b, const char *role)
{
	char text[200];
	cluster_run(b->where, "DROP ROLE IF EXISTS guest");
	snprintf(text, sizeof text, "CREATE ROLE guest LOGIN; GRANT %s TO guest", role);
	cluster_run(b->where, text);
	snprintf(text, sizeof text, "%s", b->where + strlen("postgres:"));
	memcpy(strstr(text, "user=baton"), "user=guest", 10);
	PGconn *pg = PQconnectdb(text);
	assert_int_equal(PQstatus(pg), CONNECTION_OK);
	return pg;
}

static void user_done(const struct bench *b, PGconn *pg)
{
	PQfinish(pg);
	cluster_run(b->where, "DROP OWNED BY guest; DROP ROLE guest");
}

/* The first of all that `role` may do, and `sql` says that it may not; "": nothing. */
static void assert_none(const struct bench *b, const char *sql)
{
	PGconn *pg = user_of(b);
	PGresult *r = PQexec(pg, sql);
	if (PQresultStatus(r) != PGRES_TUPLES_OK)
		fail_msg("%s", PQerrorMessage(pg));
	if (PQntuples(r) > 0)
		fail_msg("he may: %s", PQgetvalue(r, 0, 0));
	PQclear(r);
	PQfinish(pg);
}

static void who_may_only_put_has_no_other_right(void **state)
{
	const struct bench *b = *state;
	assert_none(b, "SELECT p.oid::regprocedure FROM pg_proc p "
	               "WHERE p.pronamespace = 'baton'::regnamespace "
	               "AND p.proname NOT IN ('put', 'put_many') "
	               "AND has_function_privilege('baton_put', p.oid, 'EXECUTE')");
	assert_none(b, "SELECT c.oid::regclass || ' ' || r FROM pg_class c CROSS JOIN "
	               "unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', "
	               "'REFERENCES', 'TRIGGER']) r WHERE c.relkind IN ('r', 'v', 'm', 'p') "
	               "AND c.relnamespace = 'baton'::regnamespace "
	               "AND CASE WHEN r IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') "
	               "THEN has_any_column_privilege('baton_put', c.oid, r) "
	               "ELSE has_table_privilege('baton_put', c.oid, r) END");
	assert_none(b, "SELECT c.oid::regclass FROM pg_class c "
	               "WHERE c.relnamespace = 'baton'::regnamespace AND CASE WHEN c.relkind = 'S' "
	               "THEN has_sequence_privilege('baton_put', c.oid, 'USAGE, SELECT, UPDATE') "
	               "ELSE false END");
	assert_none(b,
	            "SELECT 'create' WHERE has_schema_privilege('baton_put', 'baton', 'CREATE')");
	assert_none(b, "SELECT r.rolname FROM pg_roles r WHERE r.rolname <> 'baton_put' "
	               "AND pg_has_role('baton_put', r.oid, 'USAGE')");
	assert_none(b, "SELECT rolname FROM pg_roles WHERE rolname = 'baton_put' AND (rolsuper OR "
	               "rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR "
	               "rolbypassrls)");
}

/* Nor has everybody. */
static void who_has_no_role_may_nothing(void **state)
{
	const struct bench *b = *state;
	assert_none(b, "SELECT p.oid::regprocedure FROM pg_proc p CROSS JOIN LATERAL "
	               "aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a "
	               "WHERE p.pronamespace = 'baton'::regnamespace AND a.grantee = 0");
	assert_none(b, "SELECT c.oid::regclass FROM pg_class c CROSS JOIN LATERAL "
	               "aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a "
	               "WHERE c.relkind <> 'i' AND c.relnamespace = 'baton'::regnamespace "
	               "AND a.grantee = 0");
	assert_none(b, "SELECT nspname FROM pg_namespace CROSS JOIN LATERAL aclexplode(nspacl) a "
	               "WHERE nspname = 'baton' AND a.grantee = 0");
}

/* Whoever works may not change what there is. */
static void who_runs_or_operates_may_not_change_the_tables(void **state)
{
	const struct bench *b = *state;
	static const char *const roles[] = {"baton_runner", "baton_operator"};
	static const char *const tries[] = {
		"CREATE TABLE baton.t(x int)",
		"ALTER TABLE baton.batch ADD COLUMN x int",
		"DROP TABLE baton.batch",
		"TRUNCATE baton.batch",
		"CREATE OR REPLACE FUNCTION baton.now_ms() RETURNS bigint LANGUAGE sql AS "
		"'SELECT 1::bigint'",
		"CREATE TRIGGER mine BEFORE INSERT ON baton.batch FOR EACH ROW EXECUTE FUNCTION "
		"baton.on_head()",
	};
	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
		PGconn *user = user_with(b, roles[i]);
		for (size_t j = 0; j < sizeof tries / sizeof tries[0]; j++) {
			if (does(user, tries[j]))
				fail_msg("%s may do this: %s", roles[i], tries[j]);
		}
		assert_true(does(user, "SELECT baton.put('q', 'x')"));
		assert_true(does(user, "SELECT baton.cancel(id) FROM baton.jobs"));
		user_done(b, user);
	}
}

/* The functions that put run as the owner of the tables. Types are looked for among the temporary
 * ones first, unless these are named as the last, and one with a check runs what he likes. */
static void who_may_only_put_runs_nothing_of_his_own_as_somebody_else(void **state)
{
	static const char *const types[] = {"text", "bytea", "jsonb", "int4",
	                                    "int8", "bool",  "xid8"};
	const struct bench *b = *state;
	char sql[400];
	PGconn *user = user_with(b, "baton_put");
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		snprintf(sql, sizeof sql,
		         "CREATE FUNCTION pg_temp.mine(pg_catalog.%s) RETURNS pg_catalog.bool "
		         "LANGUAGE plpgsql AS $$ BEGIN IF current_user <> session_user THEN "
		         "RAISE EXCEPTION 'this is run by %%', current_user; END IF; RETURN true; "
		         "END $$; CREATE DOMAIN pg_temp.%s AS pg_catalog.%s "
		         "CHECK (pg_temp.mine(VALUE))",
		         types[i], types[i], types[i]);
		assert_true(does(user, sql));
	}
	static const char *const puts[] = {
		"put('q', 'x'::pg_catalog.text, 'l', '{\"source\": \"s\", \"delay\": \"1 ms\"}')",
		"put('q', 'x'::pg_catalog.text, NULL, '{\"key\": \"k\"}')",
		"put_many('q', ARRAY['x', 'y']::pg_catalog.text[], 'l')",
	};
	for (size_t i = 0; i < sizeof puts / sizeof puts[0]; i++) {
		snprintf(sql, sizeof sql, "SELECT baton.%s", puts[i]);
		if (!does(user, sql))
			fail_msg("%s: %s", sql, PQerrorMessage(user));
	}
	user_done(b, user);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.jobs"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(who_may_only_put_has_no_other_right),
		SERVED_TEST(who_has_no_role_may_nothing),
		SERVED_TEST(who_runs_or_operates_may_not_change_the_tables),
		SERVED_TEST(who_may_only_put_runs_nothing_of_his_own_as_somebody_else),
	};
	return served_main("rights", tests, sizeof tests / sizeof tests[0]);
}
