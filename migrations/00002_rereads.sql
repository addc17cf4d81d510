-- Requests to read rows of a table again: made by a repair, or by a fold that
-- wrote a row without values that were never sent. The worker of the source takes
-- them up.

-- +goose Up
create table lakeweir.rereads (
    id           bigint generated always as identity primary key,
    table_id     bigint      not null references lakeweir.tables (id) on delete cascade,
    reason       text        not null,
    -- plain: a JSON array of keys; sealed: the same, for the source's token key to
    -- open; masked: as plain, with personal parts as the lake shows them.
    form         text        not null check (form in ('plain', 'sealed', 'masked')),
    keys         text        not null, -- forgotten once the request is done
    count        integer     not null,
    requested_at timestamptz not null default now(),
    done_at      timestamptz -- when bronze held the result
);
create index rereads_pending on lakeweir.rereads (table_id, id) where done_at is null;

-- +goose Down
drop table lakeweir.rereads;
