-- Removes Lakeweir's log of this database's DDL. Run it as the role that installed it, or a superuser.
BEGIN;
DROP EVENT TRIGGER IF EXISTS lakeweir_ddl_end;
DROP EVENT TRIGGER IF EXISTS lakeweir_ddl_drop;
DROP EVENT TRIGGER IF EXISTS lakeweir_ddl_rewrite;
DROP SCHEMA IF EXISTS {{schema}} CASCADE;
COMMIT;
