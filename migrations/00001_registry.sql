-- The registry: what is configured, what was seen of it, and what happened to it.
-- Rows and cursors are not here: they are in the lake.

-- +goose Up

-- The oldest Lakeweir that understands this registry, by the number of the newest
-- migration it brings. A migration that an older binary could not live with raises
-- it; all others only add.
create table lakeweir.compatibility (
    singleton  boolean primary key default true check (singleton),
    min_reader bigint  not null
);
insert into lakeweir.compatibility (min_reader) values (1);

create table lakeweir.sources (
    name           text primary key,
    kind           text        not null,
    capture        text        not null,
    config         jsonb       not null, -- never a connection or a key
    config_version integer     not null default 1,
    wal_budget     bigint      not null default 0, -- bytes; 0 when there is none
    file           text        not null default '',
    updated_at     timestamptz not null default now()
);

create table lakeweir.tables (
    id             bigint generated always as identity primary key,
    source         text        not null references lakeweir.sources (name),
    schema_name    text        not null,
    table_name     text        not null,
    name           text        not null generated always as (schema_name || '.' || table_name) stored,
    owner          text        not null,
    tier           text        not null,
    config         jsonb       not null,
    config_version integer     not null default 1,
    file           text        not null default '',
    in_files       boolean     not null default true, -- false: no file names it any more; it goes on
    retired_at     timestamptz,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    unique (source, name)
);

create table lakeweir.table_configs (
    table_id bigint      not null references lakeweir.tables (id) on delete cascade,
    version  integer     not null,
    config   jsonb       not null,
    at       timestamptz not null default now(),
    primary key (table_id, version)
);

create table lakeweir.column_schemas (
    table_id bigint      not null references lakeweir.tables (id) on delete cascade,
    version  integer     not null check (version > 0),
    columns  jsonb       not null,
    seen_at  timestamptz not null default now(),
    primary key (table_id, version)
);

-- One row a table, rewritten about once a second: no index but the key, so that
-- each update stays on its page.
create table lakeweir.table_status (
    table_id        bigint primary key references lakeweir.tables (id) on delete cascade,
    state           text        not null,
    since           timestamptz not null,
    code            text        not null default '',
    message         text        not null default '',
    hint            text        not null default '',
    snapshot        jsonb,
    bronze_through  pg_lsn,
    current_through pg_lsn,
    history_through pg_lsn,
    fresh_at        timestamptz,
    updated_at      timestamptz not null
) with (fillfactor = 50);

-- Sums over every batch ever recorded, since batches are pruned.
create table lakeweir.table_totals (
    table_id       bigint primary key references lakeweir.tables (id) on delete cascade,
    changes        bigint not null default 0,
    bronze_rows    bigint not null default 0,
    current_rows   bigint not null default 0,
    history_rows   bigint not null default 0,
    last_batch_at  timestamptz,
    newest         timestamptz -- commit time of the newest change
) with (fillfactor = 50);

create table lakeweir.batches (
    table_id    bigint      not null references lakeweir.tables (id) on delete cascade,
    at          timestamptz not null,
    id          text        not null,
    from_cursor text        not null,
    to_cursor   text        not null,
    creates     bigint      not null,
    updates     bigint      not null,
    deletes     bigint      not null,
    reads       bigint      not null,
    truncates   bigint      not null,
    unfit       bigint      not null,
    unfits      jsonb,
    newest      timestamptz,
    bytes       bigint      not null,
    bronze      jsonb, -- each layer: rows, removed, files, bytes, ms, snapshotId; null: no commit
    current     jsonb,
    history     jsonb,
    primary key (table_id, at, id)
);

-- How old a table was at worst, and how many changes it took, in each ten seconds
-- of about the last hour. No row: nobody reported.
create table lakeweir.table_samples (
    at       timestamptz not null,
    table_id bigint      not null references lakeweir.tables (id) on delete cascade,
    age_ms   bigint,
    changes  bigint      not null default 0,
    primary key (at, table_id)
) with (fillfactor = 70);

create table lakeweir.table_events (
    table_id bigint      not null references lakeweir.tables (id) on delete cascade,
    id       bigint generated always as identity,
    at       timestamptz not null default now(),
    kind     text        not null,
    detail   jsonb       not null default '{}',
    primary key (table_id, id)
);

create table lakeweir.source_status (
    source         text primary key references lakeweir.sources (name) on delete cascade,
    end_lsn        pg_lsn      not null,
    confirmed_lsn  pg_lsn      not null,
    flushed_lsn    pg_lsn      not null,
    retained_bytes bigint      not null,
    slot_state     text        not null,
    active         boolean     not null,
    updated_at     timestamptz not null
) with (fillfactor = 50);

-- The write-ahead note of what a slot was told it may forget: written before the
-- slot is told, so that a slot that lost its place is recognised.
create table lakeweir.source_slots (
    source         text primary key references lakeweir.sources (name) on delete cascade,
    slot_name      text        not null,
    system_id      text        not null,
    timeline       bigint      not null,
    consistent_lsn pg_lsn      not null,
    flushed_lsn    pg_lsn      not null,
    created_at     timestamptz not null default now(),
    flushed_at     timestamptz not null default now()
);

create table lakeweir.workers (
    id         text primary key,
    source     text        not null,
    pid        integer     not null,
    version    text        not null default '',
    started_at timestamptz not null,
    seen_at    timestamptz not null
);
create index workers_by_source on lakeweir.workers (source, seen_at desc);

create table lakeweir.reconciliations (
    id          text primary key,
    table_id    bigint      not null references lakeweir.tables (id) on delete cascade,
    at          timestamptz not null, -- when the source was read
    cursor      text        not null, -- the place in the source's log that was compared
    source_rows bigint      not null,
    lake_rows   bigint      not null,
    differing   bigint      not null,
    report      jsonb,
    took_ms     bigint      not null
);
create index reconciliations_by_table on lakeweir.reconciliations (table_id, at desc);

-- +goose Down
drop table lakeweir.reconciliations, lakeweir.workers, lakeweir.source_slots, lakeweir.source_status,
    lakeweir.table_events, lakeweir.table_samples, lakeweir.batches, lakeweir.table_totals,
    lakeweir.table_status, lakeweir.column_schemas, lakeweir.table_configs, lakeweir.tables,
    lakeweir.sources, lakeweir.compatibility;
