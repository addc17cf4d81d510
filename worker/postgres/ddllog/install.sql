-- Lakeweir's log of this database's DDL, version {{version}}. An event trigger writes the
-- definition of each published table that a command alters into the WAL, in the transaction
-- of the command, where a worker finds it between the rows from before and after. It writes
-- nothing else, never fails a command, and does nothing in sessions that apply another
-- database's changes (session_replication_role = replica).
--
-- Run it as a superuser, or a role that may make event triggers (Amazon RDS:
-- rds_superuser), in the source's database. It may be run again; what it made is replaced.
BEGIN;

CREATE SCHEMA IF NOT EXISTS {{schema}};

CREATE OR REPLACE FUNCTION {{schema}}.definitions(tables oid[], OUT oid oid, OUT definition jsonb) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $definitions$
{{definitions}}
$definitions$;

-- published reports whether a publication has the table, or a partitioned table above it.
CREATE OR REPLACE FUNCTION {{schema}}.published(tab oid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $published$
DECLARE
  family oid[] := ARRAY(SELECT a.relid::oid FROM pg_partition_ancestors(tab::regclass) a) || tab;
BEGIN
  IF EXISTS (SELECT FROM pg_publication WHERE puballtables) OR EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = ANY(family)) THEN
    RETURN true;
  ELSIF current_setting('server_version_num')::int < 150000 THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT FROM pg_publication_namespace n JOIN pg_class c ON c.relnamespace = n.pnnspid WHERE c.oid = ANY(family));
END
$published$;

-- root returns the partitioned table that a partition is of, or the table itself.
CREATE OR REPLACE FUNCTION {{schema}}.root(tab oid) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $root$
SELECT coalesce((SELECT a.relid::oid FROM pg_partition_ancestors(tab::regclass) WITH ORDINALITY a(relid, n) ORDER BY n DESC LIMIT 1), tab)
$root$;

-- tell writes a document into the log, in UTF-8 whatever the database's encoding is. The
-- empty message behind it keeps it before the transaction's next row: decoding places a
-- message at its end, where the next record begins, and then either may come first.
CREATE OR REPLACE FUNCTION {{schema}}.tell(doc jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $tell$
BEGIN
  PERFORM pg_logical_emit_message(true, '{{prefix}}', convert_to(doc::text, 'UTF8'));
  PERFORM pg_logical_emit_message(true, '{{prefix}}', '');
END
$tell$;

CREATE OR REPLACE FUNCTION {{schema}}.log_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms'{{settings}} AS $log_ddl$
DECLARE
  tables oid[];
  doc jsonb;
  gone record;
  -- One ALTER TABLE by itself, without a USING: every value that was kept was kept as it is.
  plain boolean := coalesce(current_query() ~* '^\s*alter\s+table\M' AND current_query() !~* '\musing\M' AND strpos(rtrim(current_query(), E' \t\r\n;'), ';') = 0, false);
BEGIN
  BEGIN
    IF tg_event = 'table_rewrite' THEN
      PERFORM {{schema}}.tell(jsonb_build_object('v', 1, 'event', 'rewrite', 'oid', {{schema}}.root(pg_event_trigger_table_rewrite_oid())::bigint));
      RETURN;
    ELSIF tg_event = 'sql_drop' THEN
      FOR gone IN SELECT objid, schema_name, object_name FROM pg_event_trigger_dropped_objects()
          WHERE classid = 'pg_class'::regclass AND objsubid = 0 AND object_type = 'table' AND NOT is_temporary LOOP
        PERFORM {{schema}}.tell(jsonb_build_object('v', 1, 'event', 'drop', 'oid', gone.objid::bigint, 'schema', gone.schema_name, 'name', gone.object_name));
      END LOOP;
      IF tg_tag = 'ALTER TABLE' THEN
        RETURN; -- of which the end of the command tells
      END IF;
      tables := ARRAY(SELECT DISTINCT d.objid FROM pg_event_trigger_dropped_objects() d WHERE d.classid = 'pg_class'::regclass AND d.objsubid > 0);
    ELSE
      WITH RECURSIVE commands AS MATERIALIZED (SELECT classid, objid FROM pg_event_trigger_ddl_commands()),
      -- The types that an altered type is in: arrays of it, domains over it.
      types(oid) AS (
        SELECT objid FROM commands WHERE classid = 'pg_type'::regclass
        UNION
        SELECT t.oid FROM types y JOIN pg_type t ON y.oid IN (t.typbasetype, t.typelem))
      SELECT array_agg(DISTINCT found.oid) INTO tables FROM (
        SELECT objid AS oid FROM commands WHERE classid = 'pg_class'::regclass
        UNION ALL
        SELECT a.attrelid FROM types y JOIN pg_attribute a ON a.atttypid = y.oid AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT c.oid FROM commands m JOIN pg_class c ON c.relnamespace = m.objid WHERE m.classid = 'pg_namespace'::regclass) found
      WHERE EXISTS (SELECT FROM pg_class c WHERE c.oid = found.oid AND c.relkind IN ('r', 'p'));
    END IF;
    tables := ARRAY(SELECT DISTINCT {{schema}}.root(t) FROM unnest(tables) t WHERE {{schema}}.published(t));
    FOR doc IN SELECT d.definition FROM {{schema}}.definitions(tables) d LOOP
      PERFORM {{schema}}.tell((doc || jsonb_build_object('command', tg_tag, 'plain', plain)));
    END LOOP;
  EXCEPTION WHEN OTHERS THEN
    BEGIN
      PERFORM {{schema}}.tell(jsonb_build_object('v', 1, 'event', 'failed', 'command', tg_tag, 'state', SQLSTATE));
    EXCEPTION WHEN OTHERS THEN
      NULL;
    END;
  END;
END
$log_ddl$;

REVOKE ALL ON FUNCTION {{schema}}.log_ddl() FROM PUBLIC;

DROP EVENT TRIGGER IF EXISTS lakeweir_ddl_end;
DROP EVENT TRIGGER IF EXISTS lakeweir_ddl_drop;
DROP EVENT TRIGGER IF EXISTS lakeweir_ddl_rewrite;
CREATE EVENT TRIGGER lakeweir_ddl_end ON ddl_command_end WHEN TAG IN ('ALTER TABLE', 'CREATE TABLE', 'ALTER TYPE', 'ALTER DOMAIN', 'ALTER SCHEMA')
  EXECUTE FUNCTION {{schema}}.log_ddl();
CREATE EVENT TRIGGER lakeweir_ddl_drop ON sql_drop EXECUTE FUNCTION {{schema}}.log_ddl();
CREATE EVENT TRIGGER lakeweir_ddl_rewrite ON table_rewrite EXECUTE FUNCTION {{schema}}.log_ddl();
COMMENT ON EVENT TRIGGER lakeweir_ddl_end IS 'lakeweir ddl log {{version}}';

COMMIT;
