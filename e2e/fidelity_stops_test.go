package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack"
)

// arraysLeftOut are the types whose arrays, and domains over them, never come.
var arraysLeftOut = []string{
	"interval", "interval year to month", "interval day to second(3)", "name", "money", "xml", "point", "refcursor", "bit varying", "bit varying(5)",
}

// leftOut is a table of such columns. Its capture by Debezium stops.
const leftOut = "left_out"

func createLeftOut() string {
	columns := []string{"id int primary key", "v text"}
	var setup strings.Builder
	for i, typ := range arraysLeftOut {
		fmt.Fprintf(&setup, "create domain left%d as %s[]; ", i, typ)
		columns = append(columns, fmt.Sprintf("a%d %s[]", i, typ), fmt.Sprintf("e%d left%d", i, i))
	}
	return setup.String() + "create table " + leftOut + " (" + strings.Join(columns, ", ") + "); insert into " + leftOut + " (id, v) values (1, 'read')"
}

// requireLeftOut requires that the topic of the table has its other columns alone.
func requireLeftOut(t *testing.T, on *stack.Stack) {
	t.Helper()
	o := openTopic(t, on, "debezium.public."+leftOut)
	o.atLeast(1)
	require.Equal(t, []string{"id", "v"}, slices.Sorted(maps.Keys(o.events[0].after)))
}

// stops are what keeps a connector from capturing, for good and with every table.
var stops = []struct {
	name   string
	setup  []string // before the connector is made
	stream string   // a statement while it streams; empty: it does not come so far
	trace  string   // in the failure, or where Connect sees none in its log
	silent bool     // Connect shows it as RUNNING
	says   string   // docs/debezium-values.md
}{
	{
		name: "enum_domain", setup: []string{"create type e as enum ('a')", "create domain d as e", "create table t (id int primary key)"},
		trace: "NullPointerException", says: "A **domain over an enum, or an enum without labels, anywhere in the database**",
	},
	{
		name: "empty_enum", setup: []string{"create type e as enum ()", "create table t (id int primary key)"},
		trace: "NullPointerException", says: "or an enum without labels, anywhere in the database**, in use or not, keeps the connector from starting",
	},
	{
		name: "long_interval", setup: []string{"create table t (id int primary key, v interval)", "insert into t values (1, '2147483648:00:00')"},
		says: "An **interval of more than 2,147,483,647 hours** fails the snapshot",
	},
	{
		name: "offset_seconds", setup: []string{"create table t (id int primary key, v timetz)"},
		stream: "insert into t values (1, '12:00:00-08:30:15')", says: "a **time with time zone whose offset has seconds** (`-08:30:15`) fails the stream",
	},
	{
		name: "null_element", setup: []string{"create domain d as int", "create table t (id int primary key, v d[])", "insert into t values (1, '{1,null}')"},
		trace: "Failed to properly convert data value", says: "**An array with NULL among its elements**, of a type that Debezium does not know",
	},
	{
		name: "nan_element", setup: []string{"create table t (id int primary key, v numeric(12,2)[])", "insert into t values (1, '{NaN}')"},
		trace: "Failed to properly convert data value", says: "**a numeric array with `NaN` or an infinity**",
	},
	{
		name: "empty_vector", setup: []string{"create table t (id int primary key, v int2vector)"},
		stream: "insert into t values (1, '')", trace: "Failed to properly convert data value", says: "an **empty int2vector or oidvector**",
	},
	{
		name: "cursor", setup: []string{"create table t (id int primary key, v refcursor)", "insert into t values (1, 'of nothing')"},
		trace: `cursor "of nothing" does not exist`, silent: true, says: "**A value in a column of type refcursor** keeps the snapshot from ending",
	},
}

// requireStops has each of them stop a connector of its own, all at once.
func requireStops(t *testing.T, on *stack.Stack) {
	t.Helper()
	all := make([]*captured, len(stops))
	for i, s := range stops {
		all[i] = prepareCaptured(t, on, s.name, s.setup...)
		require.NoError(t, on.Connect.Create(t.Context(), s.name, all[i].config()))
	}
	for i, s := range stops {
		if s.stream != "" {
			require.NoError(t, on.Connect.Running(t.Context(), s.name))
			all[i].exec(s.stream)
		}
		if s.silent {
			requireLogged(t, on.Connect.Log, s.trace)
			require.NoError(t, on.Connect.Running(t.Context(), s.name))
		} else {
			trace, err := on.Connect.Failed(t.Context(), s.name)
			require.NoError(t, err, "it is documented: %s", s.says)
			require.Contains(t, trace, s.trace, s.name)
		}
		require.NoError(t, on.Connect.Delete(t.Context(), s.name))
	}
}

// requireLogged waits until a log has a text.
func requireLogged(t *testing.T, log, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		all, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(all), text)
	}, time.Minute, 200*time.Millisecond, text)
}
