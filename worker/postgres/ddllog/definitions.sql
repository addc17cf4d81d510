-- Describes tables as they are now: one JSON document a table.
SELECT c.oid, jsonb_build_object('v', 1, 'event', 'table', 'oid', c.oid::bigint, 'schema', s.nspname, 'name', c.relname,
  'identity', c.relreplident::text,
  'key', (SELECT coalesce(jsonb_agg(a.attname ORDER BY k), '[]') FROM pg_index i CROSS JOIN LATERAL generate_series(0, i.indnkeyatts - 1) k
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k] WHERE i.indrelid = c.oid AND i.indisprimary),
  'carries', (SELECT coalesce(jsonb_agg(a.attname ORDER BY k), '[]') FROM pg_index i CROSS JOIN LATERAL generate_series(0, i.indnkeyatts - 1) k
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k]
    WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END),
  'columns', (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
      'n', a.attnum, 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'oid', a.atttypid::bigint, 'mod', a.atttypmod,
      'dims', nullif(a.attndims, 0), 'notnull', nullif(a.attnotnull, false), 'generated', nullif(a.attgenerated::text, ''), 'identity', nullif(a.attidentity::text, ''),
      'default', pg_get_expr(d.adbin, d.adrelid),
      -- How far the default's value varies, by the functions that its expression calls.
      'varies', CASE WHEN d.adbin IS NULL THEN NULL
        WHEN d.adbin::text LIKE '%{NEXTVALUEEXPR %' THEN 'v'
        ELSE (SELECT CASE max(CASE p.provolatile WHEN 'v' THEN 2 WHEN 's' THEN 1 ELSE 0 END) WHEN 2 THEN 'v' WHEN 1 THEN 's'
            ELSE CASE WHEN d.adbin::text ~ '\{(SQLVALUEFUNCTION|COERCEVIAIO) ' THEN 's' ELSE 'i' END END
          FROM regexp_matches(d.adbin::text, ':(?:op)?funcid ([0-9]+)', 'g') m JOIN pg_proc p ON p.oid = m[1]::oid) END,
      -- What rows show that were there before the column was added.
      'missing', CASE WHEN a.atthasmissing THEN array_to_string(a.attmissingval, '') END)) ORDER BY a.attnum), '[]')
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  -- The columns' types, and those under domains and arrays.
  'types', (WITH RECURSIVE need(oid) AS (
      SELECT DISTINCT a.atttypid FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      UNION
      SELECT u.oid FROM need n JOIN pg_type t ON t.oid = n.oid, LATERAL (VALUES (t.typbasetype), (t.typelem)) u(oid) WHERE u.oid <> 0)
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'oid', t.oid::bigint, 'base', nullif(t.typbasetype, 0)::bigint, 'elem', CASE WHEN e.typarray = t.oid AND e.typdelim = ',' THEN nullif(t.typelem, 0)::bigint END,
        'mod', t.typtypmod, 'name', t.typname, 'schema', ts.nspname, 'kind', t.typtype::text, 'dims', nullif(t.typndims, 0),
        'labels', (SELECT jsonb_agg(jsonb_build_object('oid', l.oid::bigint, 'name', l.enumlabel) ORDER BY l.enumsortorder) FROM pg_enum l WHERE l.enumtypid = t.oid)))), '[]')
    FROM need n JOIN pg_type t ON t.oid = n.oid JOIN pg_namespace ts ON ts.oid = t.typnamespace LEFT JOIN pg_type e ON e.oid = t.typelem))
FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
WHERE c.oid = ANY($1) AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
