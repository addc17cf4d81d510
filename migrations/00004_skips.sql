-- Records of topics that a person has a worker pass by, when it cannot read them.

-- +goose Up

create table lakeweir.skips (
    table_id  bigint      not null references lakeweir.tables (id) on delete cascade,
    partition int         not null,
    "offset"  bigint      not null,
    reason    text        not null,
    actor     text        not null,
    at        timestamptz not null default now(),
    primary key (table_id, partition, "offset")
);

-- +goose Down
drop table lakeweir.skips;
