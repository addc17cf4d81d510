-- How the connector of a source is, on the path through Kafka; written by what keeps it.

-- +goose Up
create table lakeweir.connectors (
    source  text primary key references lakeweir.sources (name) on delete cascade,
    name    text        not null,
    state   text        not null, -- as Kafka Connect calls it, or MISSING, UNREACHABLE, REFUSED
    trace   text        not null default '',
    tasks   jsonb       not null default '[]', -- [{id, state, worker, trace}]
    since   timestamptz not null default now(), -- of this state and those of its tasks
    seen_at timestamptz not null default now()
);

-- +goose Down
drop table lakeweir.connectors;
