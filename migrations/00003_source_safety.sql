-- What keeps a source safe, and what must outlive a worker about it.

-- +goose Up

-- A gap that was found. A table with one is not read on, whatever its slot says
-- later, until it is read anew as a later generation: the position that proves the
-- gap is overwritten as the source's other tables go on.
create table lakeweir.table_gaps (
    table_id   bigint primary key references lakeweir.tables (id) on delete cascade,
    generation bigint      not null,
    code       text        not null,
    message    text        not null,
    hint       text        not null default '',
    found_at   timestamptz not null default now()
);

-- The relations at the source that a table's rows in the lake come from: the table
-- itself and, of a partitioned one, its leaves; relations: [{oid, name, file}].
create table lakeweir.table_relations (
    table_id   bigint primary key references lakeweir.tables (id) on delete cascade,
    relations  jsonb       not null,
    updated_at timestamptz not null default now()
);

create table lakeweir.source_events (
    source text        not null references lakeweir.sources (name) on delete cascade,
    id     bigint generated always as identity,
    at     timestamptz not null default now(),
    kind   text        not null,
    detail jsonb       not null default '{}',
    primary key (source, id)
);

alter table lakeweir.source_status add column budget_stage text not null default '';
alter table lakeweir.source_status add column held_by text not null default '';

-- +goose Down
alter table lakeweir.source_status drop column held_by;
alter table lakeweir.source_status drop column budget_stage;
drop table lakeweir.source_events, lakeweir.table_relations, lakeweir.table_gaps;
