-- Folds the audit of one table into the history that the lake must have: one row
-- per key and version.
--
--   $1  the table
--   $2  the columns whose change makes a version
--
-- A transaction counts as a whole: what it left behind, against what it found.
with untracked as (
    select coalesce(array_agg(attname::text), '{}') as columns
    from pg_attribute
    where attrelid = format('public.%I', $1::text)::regclass and attnum > 0 and attname <> all ($2::text[])
),
change as (
    select seq, xid, op, key, old_key, "row"
    from demo_audit.changes
    where tbl = $1
),
-- What happened to each key. A row that moves leaves its old key before it takes
-- the new one; a truncate ends every key that was there.
event as (
    select key, xid, seq, 1 as part, "row" from change where op in ('I', 'U')
    union all
    select key, xid, seq, 0, null from change where op = 'D'
    union all
    select old_key, xid, seq, 0, null from change where old_key is not null
    union all
    select k.key, t.xid, t.seq, 0, null
    from change t
    cross join lateral (select distinct c.key from change c where c.seq < t.seq and c.op <> 'T') k
    where t.op = 'T'
),
-- What each transaction left behind; null when the key has no row.
state as (
    select distinct on (key, xid) key, xid, seq, part, "row"
    from event
    order by key, xid, seq desc, part desc
),
compared as (
    select *, lag("row") over (partition by key order by seq, part) as found
    from state
),
-- A boundary is where a version starts or, with no row left, where one ends.
judged as (
    select *,
           case
               when "row" is null then found is not null
               when found is null then true
               else ("row" - u.columns)::text is distinct from (found - u.columns)::text
           end as boundary
    from compared
    cross join untracked u
),
-- Where the clock went back, a boundary is at the one before it.
placed as (
    select *,
           count(*) filter (where boundary) over w as version,
           max(case when boundary then pg_xact_commit_timestamp(xid::xid) end) over w as at
    from judged
    window w as (partition by key order by seq, part)
),
-- Columns that make no version follow the source while their version is open, so
-- a version's values are those that its last change left.
folded as (
    select key, version, min(at) as valid_from,
           (array_agg("row" order by seq desc, part desc))[1] as "row"
    from placed
    where version > 0
    group by key, version
),
history as (
    select *, lead(valid_from) over (partition by key order by version) as valid_to
    from folded
)
select key, version, "row", valid_from, valid_to
from history
where "row" is not null
