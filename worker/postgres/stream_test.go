package postgres

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestEveryKindOfChangeArrivesInCommitOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table ol (order_id int, line int, qty int, primary key (order_id, line))`)
	l.table("ol", "order_id", "line")
	l.begin()
	l.snapshotted()
	l.exec(`insert into ol values (10,1,5),(10,2,7);
update ol set qty = 6 where line = 1;
update ol set line = 3 where order_id = 10 and line = 1;
update ol set order_id = 11 where order_id = 10;
delete from ol where line = 2;
insert into ol values (1,1,null);
truncate ol;
insert into ol values (2,2,2);`)
	l.drain()
	want := strings.TrimLeft(`
c after(10, 1, 5)
c after(10, 2, 7)
u after(10, 1, 6)
d before(10, 1, <absent>) other(10, 3, 6)
c after(10, 3, 6) other(10, 1, <absent>)
d before(10, 2, <absent>) other(11, 2, 7)
c after(11, 2, 7) other(10, 2, <absent>)
d before(10, 3, <absent>) other(11, 3, 6)
c after(11, 3, 6) other(10, 3, <absent>)
d before(11, 2, <absent>)
c after(1, 1, <null>)
t
c after(2, 2, 2)
`, "\n")
	require.Empty(t, gocmp.Diff(want, l.store["public.ol"].script()))
	l.same("ol")
}
