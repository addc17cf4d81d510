-- Changes of tables' shapes and who decided what of them; tables that cannot go on, and
-- where their changes are kept meanwhile. No value of a row is in any of it.

-- +goose Up

-- Changes of a table at its source, from one place of its log on.
create table lakeweir.schema_changes (
    id         bigint generated always as identity primary key,
    table_id   bigint      not null references lakeweir.tables (id) on delete cascade,
    found_at   timestamptz not null default now(),
    place      text        not null, -- as it is printed; '' before anything was read
    at         jsonb       not null, -- the same as {position, offsets}
    before     jsonb, -- the table as it was declared; null: not known
    after      jsonb, -- null: it is gone
    changes    jsonb       not null, -- what is different, one by one
    evidence   jsonb       not null default '{}',
    state      text        not null default 'pending' check (state in
        ('pending', 'evolving', 'held', 'quarantined', 'approved', 'rejected', 'applied', 'superseded')),
    since      timestamptz not null default now(), -- of the state
    applied_at timestamptz
);
create index schema_changes_by_table on lakeweir.schema_changes (table_id, id desc);
create unique index schema_changes_open on lakeweir.schema_changes (table_id, place) where state not in ('applied', 'superseded');

-- Every verdict of the policies on them, and every word of a person.
create table lakeweir.schema_decisions (
    change_id bigint      not null references lakeweir.schema_changes (id) on delete cascade,
    id        bigint generated always as identity,
    at        timestamptz not null default now(),
    verdict   text        not null check (verdict in ('evolve', 'hold', 'quarantine', 'approve', 'reject')),
    rule      text        not null default '', -- those that decided; '' for a person
    judged    jsonb, -- what every rule said; null for a person
    input     jsonb, -- what the policies were given; null for a person
    actor     text        not null,
    reason    text        not null default '',
    mappings  jsonb, -- how columns are to follow, where a person says it
    primary key (change_id, id)
);

-- A table that cannot go on. What comes for it is sealed under a key of its own.
create table lakeweir.quarantines (
    id             bigint generated always as identity primary key,
    table_id       bigint      not null references lakeweir.tables (id) on delete cascade,
    change_id      bigint      references lakeweir.schema_changes (id) on delete set null,
    since          timestamptz not null default now(),
    code           text        not null,
    reason         text        not null,
    hint           text        not null default '',
    evidence       jsonb       not null default '{}',
    at             jsonb       not null, -- the first change that was not handed over
    state          text        not null default 'parking' check (state in ('parking', 'replaying', 'released')),
    key            text, -- sealed by the source's token key where it has one; null once destroyed
    key_id         text        not null,
    folder         text        not null, -- where the files are
    through        jsonb, -- everything from "at" up to here is in a file; null: nothing is yet
    runs           bigint      not null default 0,
    events         bigint      not null default 0,
    bytes          bigint      not null default 0, -- of the files
    replays        integer     not null default 0, -- how often handing back was begun
    replayed       bigint      not null default 0, -- the runs that bronze holds, of the last replay
    asked_at       timestamptz, -- when somebody asked for it to be released
    asked_by       text        not null default '',
    asked_for      text        not null default '',
    released_at    timestamptz,
    abandoned      boolean     not null default false, -- ended without its runs being handed back
    swept_at       timestamptz, -- when its files were gone
    constraint no_key_after_release check ((key is null) = (state = 'released'))
);
create unique index quarantines_open on lakeweir.quarantines (table_id) where state <> 'released';
create index quarantines_by_table on lakeweir.quarantines (table_id, id desc);
create index quarantines_unswept on lakeweir.quarantines (id) where state = 'released' and swept_at is null;

-- The sealed files of a quarantine, in order. One that is not here does not count.
create table lakeweir.parked (
    quarantine_id bigint      not null references lakeweir.quarantines (id) on delete cascade,
    seq           bigint      not null check (seq > 0),
    file          text        not null, -- in the quarantine's folder
    digest        bytea       not null, -- SHA-256 of the file
    events        bigint      not null,
    bytes         bigint      not null,
    from_place    jsonb       not null,
    to_place      jsonb       not null,
    at            timestamptz not null default now(),
    primary key (quarantine_id, seq)
);

-- A skip is of a record of a topic, or of a change at a position.
alter table lakeweir.skips drop constraint skips_pkey;
alter table lakeweir.skips alter column partition drop not null;
alter table lakeweir.skips alter column "offset" drop not null;
alter table lakeweir.skips add column position text;
alter table lakeweir.skips add column passed_at timestamptz; -- when a worker last passed it by
alter table lakeweir.skips add column code text not null default ''; -- and why it could not be read
alter table lakeweir.skips add column message text not null default '';
alter table lakeweir.skips add constraint skips_of_one_change
    check ((partition is null) = ("offset" is null) and (position is null) <> (partition is null));
create unique index skips_of_records on lakeweir.skips (table_id, partition, "offset") where position is null;
create unique index skips_of_positions on lakeweir.skips (table_id, position) where position is not null;

-- Whoever listens to channel lakeweir hears the name of the source of which a decision, a
-- quarantine or a skip has changed.
-- +goose StatementBegin
create function lakeweir.tell() returns trigger language plpgsql as $$
begin
    perform pg_notify('lakeweir', t.source) from lakeweir.tables t where t.id = new.table_id;
    return null;
end $$;
-- +goose StatementEnd
create trigger tell_found after insert on lakeweir.schema_changes for each row execute function lakeweir.tell();
create trigger tell_state after update of state on lakeweir.schema_changes for each row
    when (old.state is distinct from new.state) execute function lakeweir.tell();
create trigger tell_began after insert on lakeweir.quarantines for each row execute function lakeweir.tell();
create trigger tell_state after update of state, asked_at, code on lakeweir.quarantines for each row
    when ((old.state, old.asked_at, old.code) is distinct from (new.state, new.asked_at, new.code)) execute function lakeweir.tell();
create trigger tell_asked after insert on lakeweir.skips for each row execute function lakeweir.tell();

-- +goose Down
drop trigger tell_asked on lakeweir.skips;
drop table lakeweir.parked, lakeweir.quarantines, lakeweir.schema_decisions, lakeweir.schema_changes;
drop function lakeweir.tell();
delete from lakeweir.skips where position is not null;
drop index lakeweir.skips_of_positions, lakeweir.skips_of_records;
alter table lakeweir.skips drop constraint skips_of_one_change;
alter table lakeweir.skips drop column message, drop column code, drop column passed_at, drop column position;
alter table lakeweir.skips add primary key (table_id, partition, "offset");
