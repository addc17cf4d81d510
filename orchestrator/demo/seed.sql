-- Rows for a shop that has been open for a while. One statement per table; each is
-- run in a transaction of its own with the number of orders as :orders.

-- customers
insert into customers (customer_id, email, full_name, phone, birth_date, segment, created_at, last_seen_at)
select i, 'customer' || i || '@example.com', 'Customer ' || i,
       case when i % 7 <> 0 then '+1 555 01' || lpad((i % 100)::text, 2, '0') end,
       case when i % 5 <> 0 then date '1940-01-01' + (i * 37 % 24000)::int end,
       (array['new', 'regular', 'regular', 'vip'])[1 + i % 4],
       now() - make_interval(hours => (i % 9000)::int), now() - make_interval(mins => (i % 9000)::int)
from generate_series(1, greatest(:orders / 4, 10)) i;

-- orders
insert into orders (order_id, customer_id, status, amount, currency, placed_at, paid_at, shipping_address, note, tags, attributes)
select i, 1 + i * 7919 % greatest(:orders / 4, 10),
       (array['placed', 'paid', 'shipped', 'shipped', 'returned'])[1 + i % 5]::order_status,
       (500 + i * 7907 % 40000) / 100.0, (array['EUR', 'EUR', 'USD', 'GBP'])[1 + i % 4],
       now() - make_interval(mins => (:orders - i)::int),
       case when i % 5 > 0 then now() - make_interval(mins => (:orders - i)::int) + interval '90 seconds' end,
       i % 300 || ' Harbour Road', case when i % 11 = 0 then 'leave at the door' end,
       case i % 3 when 0 then '{}'::text[] when 1 then array['web'] else array['app', 'gift, wrapped'] end,
       jsonb_build_object('channel', (array['web', 'app'])[1 + i % 2], 'visits', i % 13)
from generate_series(1, :orders) i;

-- order_items
insert into order_items (order_id, line_no, sku, quantity, unit_price)
select o, l, 'SKU-' || lpad((o * 31 % 5000)::text, 5, '0'), 1 + (o + l) % 3, (199 + (o * 53 + l * 17) % 9000) / 100.0
from generate_series(1, :orders) o, generate_series(1, 1 + o % 4) l;

-- payments
insert into payments (payment_id, order_id, amount, provider, captured, created_at)
select gen_random_uuid(), order_id, amount, (array['card', 'transfer', 'wallet'])[1 + order_id % 3], paid_at is not null, placed_at
from orders;

-- refunds
insert into refunds (refund_id, payment_id, amount, reason, created_at)
select row_number() over (order by o.order_id), p.payment_id, round(o.amount / 2, 2), 'returned', o.placed_at + interval '3 days'
from orders o join payments p using (order_id)
where o.status = 'returned';

-- documents
insert into documents (document_id, order_id, title, body, updated_at)
select i, i * 10, 'Invoice ' || i,
       repeat('Invoice ' || i || ': goods as ordered, to be paid within fourteen days. ', 45 + (i * 97 % 500)::int),
       now() - make_interval(mins => (:orders - i * 10)::int)
from generate_series(1, :orders / 10) i;

-- event_log
insert into event_log (occurred_at, kind, order_id, payload)
select placed_at, 'order.placed', order_id, jsonb_build_object('amount', amount, 'channel', attributes -> 'channel')
from orders;
