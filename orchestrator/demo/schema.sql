-- The example shop. Its tables differ on purpose: a composite key, a uuid key, no
-- key at all, large texts, an enum, a domain, an array, JSON, personal data.

create type order_status as enum ('placed', 'paid', 'shipped', 'returned');

create domain email_address as text check (value like '%_@_%');

create table customers (
    customer_id  bigint primary key,
    email        email_address not null,
    full_name    text not null,
    phone        text,
    birth_date   date,
    segment      text not null default 'new',
    created_at   timestamptz not null default now(),
    last_seen_at timestamptz not null default now()
);

create table orders (
    order_id         bigint primary key,
    customer_id      bigint not null,
    status           order_status not null default 'placed',
    amount           numeric(12,2) not null,
    currency         char(3) not null default 'EUR',
    placed_at        timestamptz not null default now(),
    paid_at          timestamptz,
    shipping_address text not null,
    note             text,
    tags             text[] not null default '{}',
    attributes       jsonb not null default '{}'
);

create index on orders (customer_id);

-- Cancelled orders are deleted. With the full row in the log, bronze can tell what
-- they were worth.
alter table orders replica identity full;

create table order_items (
    order_id   bigint not null,
    line_no    int not null,
    sku        text not null,
    quantity   int not null,
    unit_price numeric(10,2) not null,
    primary key (order_id, line_no)
);

create table payments (
    payment_id uuid primary key,
    order_id   bigint not null,
    amount     numeric(12,2) not null,
    provider   text not null,
    captured   boolean not null default false,
    created_at timestamptz not null default now()
);

create index on payments (order_id);

create table refunds (
    refund_id  bigint primary key,
    payment_id uuid not null,
    amount     numeric(12,2) not null,
    reason     text not null,
    created_at timestamptz not null default now()
);

create table documents (
    document_id bigint primary key,
    order_id    bigint not null,
    title       text not null,
    body        text not null,
    revision    int not null default 1,
    updated_at  timestamptz not null default now()
);

create index on documents (order_id);

-- Kept outside the row and not compressed, so that an update of another column
-- leaves the body out of the log.
alter table documents alter column body set storage external;

create table event_log (
    occurred_at timestamptz not null default clock_timestamp(),
    kind        text not null,
    order_id    bigint,
    payload     jsonb not null default '{}'
);

-- A published table without a key must name its rows by all columns, or the server
-- refuses every update and delete of it.
alter table event_log replica identity full;

