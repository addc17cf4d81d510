package debezium

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// in returns events as a run sends them.
func in(run byte, events ...Event) []Event {
	for i := range events {
		events[i].Run = RunID{run}
	}
	return events
}

func copied(sequence, lsn catalog.LSN) Event {
	e := streamed(sequence, lsn)
	e.Op = change.Create
	return e
}

func movedTo(sequence, lsn catalog.LSN) Event {
	e := streamed(sequence, lsn)
	e.Op, e.MovedTo = change.Delete, true
	return e
}

func movedFrom(sequence, lsn catalog.LSN) Event {
	e := copied(sequence, lsn)
	e.MovedFrom = true
	return e
}

// What a run's end and the next one's beginning say of what is missing.
func TestWhatMayBeMissingBetweenRuns(t *testing.T) {
	t.Parallel()
	interrupted := func(sequence, lsn catalog.LSN) Event { // of the first transaction
		e := copied(sequence, lsn)
		e.TxID = 7
		return e
	}
	for name, c := range map[string]struct {
		before []Event
		next   Event
		want   *Loss // its runs, place and txId are those of the last event before
	}{
		"the half of a key move":               {[]Event{movedTo(10, 12)}, streamed(10, 13), &Loss{Half: true, Rows: 1}},
		"of a later transaction":               {[]Event{movedTo(10, 12)}, streamed(20, 11), &Loss{Half: true, Rows: 1}},
		"a whole key move":                     {[]Event{movedTo(10, 12), movedFrom(10, 12)}, streamed(10, 13), nil},
		"a key move that comes again":          {[]Event{movedTo(10, 12)}, movedTo(10, 12), nil},
		"a half in another partition":          {[]Event{movedFrom(10, 12)}, streamed(10, 13), nil},
		"rows of a COPY":                       {[]Event{copied(10, 12), copied(10, 12)}, copied(10, 13), &Loss{Rows: 2}},
		"the first row of its next page":       {[]Event{copied(10, 12), copied(10, 12), copied(10, 13)}, copied(10, 14), &Loss{Rows: 1}},
		"which comes again":                    {[]Event{copied(10, 12), copied(10, 12)}, copied(10, 12), nil},
		"from before":                          {[]Event{copied(10, 11), copied(10, 12), copied(10, 12)}, copied(10, 11), nil},
		"from a transaction before":            {[]Event{copied(10, 12), copied(10, 12)}, copied(9, 14), nil},
		"that was over":                        {[]Event{copied(10, 12), copied(10, 12), streamed(10, 13)}, copied(10, 14), nil},
		"in another transaction":               {[]Event{copied(10, 12), copied(10, 12), copied(20, 21)}, copied(20, 22), nil},
		"single rows":                          {[]Event{copied(10, 12), copied(10, 13)}, copied(10, 14), nil},
		"an update":                            {[]Event{streamed(10, 12)}, streamed(10, 13), nil},
		"an incremental read":                  {[]Event{movedTo(10, 12)}, read(Incremental, 30, 30), nil},
		"a table that is read anew":            {[]Event{movedTo(10, 12)}, read(Initial, 0, 30), nil},
		"nothing before":                       {nil, streamed(10, 13), nil},
		"the first transaction":                {[]Event{interrupted(0, 12), interrupted(0, 12)}, interrupted(12, 14), &Loss{Rows: 2}},
		"the first transaction that comes":     {[]Event{interrupted(0, 12), interrupted(0, 12)}, interrupted(11, 12), nil},
		"the first transaction, further back":  {[]Event{interrupted(0, 12), interrupted(0, 14), interrupted(0, 14)}, interrupted(11, 12), nil},
		"the first transaction, a second time": {[]Event{interrupted(0, 12), interrupted(12, 14), interrupted(12, 14)}, interrupted(14, 16), &Loss{Rows: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placing{t: t}
			p.all(in(1, c.before...)...)
			b, err := json.Marshal(p.Order)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &p.Order))
			same := c.next
			require.Nil(t, p.Loss(&same, 0), "one run leaves nothing out")
			next := in(2, c.next)[0]
			if c.want != nil {
				last := c.before[len(c.before)-1]
				c.want.Run, c.want.Next, c.want.Sequence, c.want.LSN, c.want.TxID = RunID{1}, RunID{2}, last.Sequence, last.LSN, last.TxID
			}
			was := p.Clone()
			require.Equal(t, c.want, p.Loss(&next, 0))
			require.Equal(t, was, p.Order, "looking changes nothing")
			require.Nil(t, p.Loss(&next, 1), "of another partition nothing is known")
			p.place(next)
			require.Nil(t, p.Loss(&next, 0), "it is told once")
		})
	}
}

// Records without the header of a run show no restart, and an incremental read or a
// passed-by record hides none and invents none.
func TestWhatHidesALoss(t *testing.T) {
	t.Parallel()
	next := in(2, streamed(10, 13))[0]
	p := placing{t: t}
	p.all(in(0, movedTo(10, 12))...)
	require.Nil(t, p.Loss(&next, 0))

	p = placing{t: t}
	p.all(in(1, movedTo(10, 12))...)
	p.all(in(2, read(Incremental, 30, 30))...)
	require.NotNil(t, p.Loss(&next, 0))
	p.PassBy(1)
	require.NotNil(t, p.Loss(&next, 0))
	p.PassBy(0)
	require.Nil(t, p.Loss(&next, 0), "its second half was the record that somebody passed by")
}
