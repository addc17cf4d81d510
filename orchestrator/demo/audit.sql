-- The shop's own record of every change, written by triggers and so independent of
-- replication. The oracle folds it into history. It stands outside the schema that
-- is replicated and in no publication.

create schema demo_audit;

-- One row per changed row. seq is drawn while the row's lock is held, so it orders
-- the changes of one key. Values are kept as jsonb, which holds each of the shop's
-- types without loss. There is no index: rows are only added, and read as a whole.
create table demo_audit.changes (
    seq     bigint generated always as identity,
    xid     xid8 not null default pg_current_xact_id(),
    tbl     text not null,
    op      "char" not null,  -- I, U, D, T
    key     jsonb,            -- values of the primary key, in its order, after the change (D: before)
    old_key jsonb,            -- those before, when an update changed them
    "row"   jsonb             -- after the change; null for D and T
);

-- What Setup has done.
create table demo_audit.setup (
    step    text primary key,
    done_at timestamptz not null default now()
);

create function demo_audit.truncated() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $body$
begin
    insert into demo_audit.changes (tbl, op) values (tg_table_name, 'T');
    return null;
end $body$;

-- One trigger function per table, with its columns written out: looking them up in
-- each call costs several times as much.
do $do$
declare
    t record;
    new_key text;
    old_key text;
begin
    for t in
        select c.oid, c.relname::text as tbl,
               coalesce((select array_agg(a.attname::text order by k.n)
                         from pg_index i
                         cross join lateral unnest(i.indkey) with ordinality k(attnum, n)
                         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
                         where i.indrelid = c.oid and i.indisprimary), '{}') as key
        from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
          and c.relname in ('customers', 'orders', 'order_items', 'payments', 'refunds', 'documents', 'event_log')
    loop
        new_key := 'null::jsonb';
        old_key := 'null::jsonb';
        if t.key <> '{}' then
            select 'jsonb_build_array(' || string_agg(format('new.%I', k), ', ') || ')',
                   'jsonb_build_array(' || string_agg(format('old.%I', k), ', ') || ')'
            into new_key, old_key
            from unnest(t.key) k;
        end if;
        execute format($f$
            create function demo_audit.%1$I() returns trigger language plpgsql
                security definer set search_path = pg_catalog as $body$
            begin
                if tg_op = 'INSERT' then
                    insert into demo_audit.changes (tbl, op, key, "row") values (%2$L, 'I', %3$s, to_jsonb(new));
                elsif tg_op = 'UPDATE' then
                    insert into demo_audit.changes (tbl, op, key, old_key, "row")
                    values (%2$L, 'U', %3$s, nullif(%4$s, %3$s), to_jsonb(new));
                else
                    insert into demo_audit.changes (tbl, op, key) values (%2$L, 'D', %4$s);
                end if;
                return null;
            end $body$;
            create trigger demo_audit after insert or update or delete on public.%2$I
                for each row execute function demo_audit.%1$I();
            create trigger demo_audit_truncate after truncate on public.%2$I
                for each statement execute function demo_audit.truncated();
        $f$, 'audit_' || t.tbl, t.tbl, new_key, old_key);
    end loop;
end $do$;
