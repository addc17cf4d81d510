// Package workload makes the reference workload: what Debezium would have put on the
// topics of three tables of a shop, and what any engine must end with after reading
// them.
//
// At scale 1 it has exactly these events, and every other scale multiplies them:
//
//	           reads     creates    updates  deletes        all   live rows
//	orders     41,745    140,453    135,333    4,837    322,368     177,361
//	payments  477,022  1,543,217    140,170        –  2,160,409   2,020,239
//	refunds    11,460     52,320          –        –     63,780      63,780
//
// The initial read comes first in each topic. Then come 14 days of transactions: a new
// order comes with its payment; most payments are captured and most orders fulfilled
// soon after; 3.4 % of the orders are cancelled, which deletes them. The other payments
// are charged at once, up to eight in a transaction. A tenth of the updates of orders
// and a twentieth of those of payments hit rows of any age. orders has REPLICA IDENTITY
// FULL, so its updates and deletes have whole before images; the others' have none.
//
// All of it is a function of scale and seed alone: it has its own random numbers and no
// clock. Nothing is kept but the rows as they are now and the plan.
package workload
