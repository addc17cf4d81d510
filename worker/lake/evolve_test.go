package lake

import (
	"math"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// edited is ordersSchema after f, one version on.
func edited(f func(s *catalog.Schema)) *catalog.Schema {
	s := ordersSchema()
	s.Version++
	f(s)
	return s
}

func rename(s *catalog.Schema, from, to string) {
	i := s.Index(from)
	s.Columns[i] = s.Columns[i].Renamed(to)
}

// allKinds are the layers of a table.
func allKinds() []catalog.Layer {
	return []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History}
}

func (w *world) table(kind catalog.Layer) *table.Table {
	w.t.Helper()
	tbl, err := w.lake.cat.LoadTable(w.t.Context(), source(w.version).LakeName(ordersTable().Name, kind))
	require.NoError(w.t, err)
	return tbl
}

// ids are a table's fields by dotted name.
func ids(t *testing.T, tbl *table.Table) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, f := range tbl.Schema().Fields() {
		out[f.Name] = f.ID
		if st, ok := f.Type.(*iceberg.StructType); ok {
			for _, inner := range st.FieldList {
				out[f.Name+"."+inner.Name] = inner.ID
			}
		}
	}
	return out
}

func (w *world) evolve(to *catalog.Schema) error {
	return w.lake.Evolve(w.t.Context(), source(w.version), ordersTable(), w.ls.schema, to)
}

func (w *world) reopen(to *catalog.Schema) {
	w.t.Helper()
	ls, err := w.lake.Reopen(w.t.Context(), source(w.version), ordersTable(), to, w.ls.Layers)
	require.NoError(w.t, err)
	w.ls.Layers, w.ls.schema = ls, to
	w.f.schema = to
	w.f.take()
}

func TestColumnsKeepTheirFieldIDs(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			before := map[catalog.Layer]map[string]int{}
			states := w.states()
			for _, kind := range allKinds() {
				before[kind] = ids(t, w.table(kind))
			}
			to := edited(func(s *catalog.Schema) {
				rename(s, "shop.code", "shop")
				rename(s, "status", "state")
				s.Columns[3].Type.Precision = 20
				s.Columns[4].Dropped = true
				s.Columns = append(s.Columns, catalog.Column{Name: "note", Number: 6, Type: typ(catalog.Text), Nullable: true}, catalog.Column{Name: "tags", Number: 7, Type: listOf(catalog.Text)})
			})
			require.NoError(t, w.evolve(to))
			for _, kind := range allKinds() {
				tbl, was := w.table(kind), before[kind]
				now, last := ids(t, tbl), 0
				for _, id := range was {
					last = max(last, id)
				}
				prefixes := []string{""}
				if kind == catalog.Bronze {
					prefixes = []string{colBefore + ".", colAfter + "."}
					require.Equal(t, was["pk.shop.code"], now["pk.shop"])
					require.Equal(t, was["_other_pk.shop.code"], now["_other_pk.shop"])
				}
				for _, p := range prefixes {
					require.Equal(t, was[p+"shop.code"], now[p+"shop"])
					require.Equal(t, was[p+"status"], now[p+"state"])
					require.Equal(t, was[p+`no"te`], now[p+`no"te`], "a dropped column stays")
					require.Greater(t, now[p+"note"], last, "a new column has an id that none had")
					require.NotContains(t, now, p+"status")
				}
				require.Empty(t, differences(layout(kind, to, false).Fields(), tbl.Schema().Fields(), ""))
				if kind == catalog.Current {
					require.ElementsMatch(t, []int{now["order id"], now["shop"]}, tbl.Schema().IdentifierFieldIDs)
				}
			}
			w.reopen(to)
			require.Equal(t, states, w.states(), "no cursor moves")

			at := map[catalog.Layer]string{}
			for _, kind := range allKinds() {
				at[kind] = w.table(kind).MetadataLocation()
			}
			require.NoError(t, w.lake.Evolve(t.Context(), source(version), ordersTable(), ordersSchema(), to))
			require.NoError(t, w.lake.Evolve(t.Context(), source(version), ordersTable(), to, to))
			for _, kind := range allKinds() {
				require.Equal(t, at[kind], w.table(kind).MetadataLocation(), "what is done is not done again")
			}
		})
	}
}

func TestANameThatComesBackHasItsFirstField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	was := ids(t, w.table(catalog.Current))["status"]
	there := edited(func(s *catalog.Schema) { rename(s, "status", "state") })
	require.NoError(t, w.evolve(there))
	w.reopen(there)
	back := *there
	back.Version++
	back.Columns = slices.Clone(there.Columns)
	rename(&back, "state", "status")
	require.NoError(t, w.evolve(&back))
	require.Equal(t, was, ids(t, w.table(catalog.Current))["status"])
	require.NotContains(t, ids(t, w.table(catalog.Current)), "state")
}

// What was written as unsent, under the names of then, is unsent in the column that had
// the name, also when two have swapped theirs.
func TestUnsentValuesAreFoundUnderFormerNames(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.f.commit().update(7, "pl", "new", 700, change.Unavailable) // a key that was never seen
			b := w.f.batch
			require.Zero(t, w.save())
			to := edited(func(s *catalog.Schema) {
				rename(s, "status", `no"te`)
				s.Columns[4] = s.Columns[4].Renamed("status")
			})
			for range 2 { // swapped once, however often it is asked for
				require.NoError(t, w.evolve(to))
			}
			w.reopen(to)
			found, err := w.ls.Current.Find(t.Context(), fold.Touched{Keys: [][]byte{b.Changes[0].Key}, Image: []bool{true}})
			require.NoError(t, err)
			require.Len(t, found, 1)
			img := found[0].Row.Image
			require.Equal(t, "new", string(img.Rows.Bytes(img.Row, 2)), "it is called no\"te now")
			require.Equal(t, change.Unavailable, img.Rows.Mark(img.Row, 4), "it is called status now")
			require.NotEqual(t, change.Unavailable, img.Rows.Mark(img.Row, 2))
			var marks []change.Mark
			for b, err := range w.ls.Bronze.Read(t.Context(), catalog.Position{}, w.f.end.Position, 100) {
				require.NoError(t, err)
				last := b.Changes[len(b.Changes)-1]
				marks = append(marks, b.Rows.Mark(last.After, 2), b.Rows.Mark(last.After, 4))
			}
			require.Equal(t, []change.Mark{change.Present, change.Unavailable}, marks)
			// The row is written again, under the names of today.
			w.f.commit().update(7, "pl", "paid", 700, change.Unavailable)
			require.Zero(t, w.save())
			found, err = w.ls.Current.Find(t.Context(), fold.Touched{Keys: [][]byte{b.Changes[0].Key}, Image: []bool{true}})
			require.NoError(t, err)
			img = found[0].Row.Image
			require.Equal(t, change.Unavailable, img.Rows.Mark(img.Row, 4))
			// And it is filled by a reading.
			w.f.commit().read(7, "pl", "paid", 700, "the note")
			require.Zero(t, w.save())
			require.Equal(t, []string{"1 null", "2 null", "7 the note"}, w.rows(catalog.Current))
		})
	}
}

func TestWhatIcebergCannotDoIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.another(catalog.History, func(tbl *table.Table) (*table.Table, error) {
		tx := tbl.NewTransaction()
		if err := tx.UpdateSchema(true, false).AddColumn([]string{"theirs"}, iceberg.PrimitiveTypes.Int64, "", false, nil).Commit(); err != nil {
			return nil, err
		}
		return tx.Commit(t.Context())
	})
	at := map[catalog.Layer]string{}
	for _, kind := range allKinds() {
		at[kind] = w.table(kind).MetadataLocation()
	}
	for name, f := range map[string]func(s *catalog.Schema){
		"narrowed":                 func(s *catalog.Schema) { s.Columns[3].Type.Precision = 9 },
		"another scale":            func(s *catalog.Schema) { s.Columns[3].Type.Scale = 4 },
		"another type":             func(s *catalog.Schema) { s.Columns[2].Type = typ(catalog.Int64) },
		"a longer key":             func(s *catalog.Schema) { s.Key = []int{0, 1, 2} },
		"another order of the key": func(s *catalog.Schema) { s.Key = []int{1, 0} },
		"a dropped key":            func(s *catalog.Schema) { s.Columns[1].Dropped = true },
		"dropped and added again":  func(s *catalog.Schema) { s.Columns[2].Number = 6 },
		"two of one name":          func(s *catalog.Schema) { s.Columns[3].Name = "status" },
		"a name that is another's": func(s *catalog.Schema) { rename(s, "status", "theirs") },
		"a new one of another's name": func(s *catalog.Schema) {
			s.Columns = append(s.Columns, catalog.Column{Name: "theirs", Type: typ(catalog.Text)})
		},
		"a path that two columns have": func(s *catalog.Schema) {
			s.Columns = append(s.Columns, catalog.Column{Name: "l", Type: listOf(catalog.Text)}, catalog.Column{Name: "l.element", Type: typ(catalog.Text)})
		},
	} {
		err := w.evolve(edited(f))
		require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code, "%s: %v", name, err)
		require.NotEmpty(t, catalog.Public(err).Hint, name)
		for _, kind := range allKinds() {
			require.Equal(t, at[kind], w.table(kind).MetadataLocation(), name)
		}
	}
	dropped := edited(func(s *catalog.Schema) { s.Columns[2].Dropped = true })
	require.NoError(t, w.evolve(dropped))
	w.ls.schema = dropped
	again := *dropped
	again.Columns = slices.Clone(dropped.Columns)
	again.Columns[2].Dropped = false
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(w.evolve(&again)).Code, "a dropped column's values are not a new one's")
}

func TestAnEvolutionThatFailedHalfWayIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	to := edited(func(s *catalog.Schema) {
		rename(s, "status", "state")
		s.Columns = append(s.Columns, catalog.Column{Name: "status", Number: 9, Type: typ(catalog.Text)})
	})
	w.cat.commit = func(n int) (bool, error) { return n <= 2, errBroken } // bronze and current change, and nobody says so
	require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(w.evolve(to)).Code)
	require.Contains(t, ids(t, w.table(catalog.Current)), "state")
	require.NotContains(t, ids(t, w.table(catalog.History)), "state")
	w.cat.commit = nil
	w.cat.commits = 0
	require.NoError(t, w.evolve(to))
	require.Equal(t, 1, w.cat.commits, "what was done stays as it is")
	w.reopen(to)
	w.f.commit().update(1, "pl", "paid", 100, nil, "new column")
	require.Zero(t, w.save())
	require.Equal(t, []string{"1 new column", "2 null"}, w.rows(catalog.Current))
	require.Equal(t, []string{"1 new column", "1 null closed", "2 null"}, w.rows(catalog.History))
}

func TestAColumnOfAnotherWriterComesBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	to := edited(func(s *catalog.Schema) {
		s.Columns = append(s.Columns, catalog.Column{Name: "extra", Number: 9, Type: typ(catalog.Text)})
	})
	w.cat.commit = func(n int) (bool, error) {
		if n == 2 { // current's
			w.another(catalog.Current, func(tbl *table.Table) (*table.Table, error) {
				tx := tbl.NewTransaction()
				if err := tx.UpdateSchema(true, false).AddColumn([]string{"theirs"}, iceberg.PrimitiveTypes.Int64, "", false, nil).Commit(); err != nil {
					return nil, err
				}
				return tx.Commit(t.Context())
			})
		}
		return true, nil
	}
	require.NoError(t, w.evolve(to))
	now := ids(t, w.table(catalog.Current))
	require.NotZero(t, now["theirs"])
	require.Greater(t, now["extra"], now["theirs"], "each has an id of its own")
}

// A layer that is open under older columns reads and writes nothing under the new ones.
func TestALayerOfOlderColumnsIsOpenedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	to := edited(func(s *catalog.Schema) { rename(s, "status", "state") })
	require.NoError(t, w.evolve(to))
	b := w.update().f.take()
	_, err := w.ls.Bronze.State(t.Context())
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code)
	_, err = w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code, "%v", err)
	_, err = w.ls.Current.Write(t.Context(), fold.CurrentResult{}, w.f.state())
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code, "%v", err)
	require.Len(t, w.table(catalog.Bronze).Metadata().Snapshots(), 1)
	// A schema that knows nothing of former names, as a comparison has it, may read.
	plain := *to
	plain.Columns = slices.Clone(to.Columns)
	plain.Columns[2].Was = nil
	_, err = w.lake.ForSource(source(3)).Open(t.Context(), ordersTable(), &plain)
	require.NoError(t, err)
	w.reopen(to)
	_, err = w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code, "changes of the older columns")
	_, err = w.lake.ForSource(source(3)).Open(t.Context(), ordersTable(), ordersSchema())
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code)
}

func TestKeysAreNotReadAgainForAnEvolution(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.f.commit().update(1, "pl", "paid", 100, nil)
	require.Zero(t, w.save())
	weight := w.lake.IndexBytes()
	require.NotZero(t, weight)
	to := edited(func(s *catalog.Schema) {
		rename(s, "shop.code", "shop")
		s.Columns = append(s.Columns, catalog.Column{Name: "extra", Number: 9, Type: typ(catalog.Text)})
	})
	require.NoError(t, w.evolve(to))
	w.reopen(to)
	require.NotNil(t, w.ls.Current.(*current).ledger.index)
	require.NotNil(t, w.ls.History.(*history).ledger.index)
	require.Equal(t, weight, w.lake.IndexBytes())
	w.f.commit().update(2, "pl", "paid", 100, nil, "x")
	require.Zero(t, w.save())
	require.Equal(t, []string{"1 paid", "2 paid"}, w.rows(catalog.Current))
	require.Equal(t, []string{"1 new closed", "1 paid", "2 new closed", "2 paid"}, w.rows(catalog.History))
}

// numbers has a column of each type that can be widened.
func numbersSchema() *catalog.Schema {
	return &catalog.Schema{Version: 1, Key: []int{0}, Columns: []catalog.Column{
		{Name: "id", Number: 1, Type: typ(catalog.Int32)},
		{Name: "i", Number: 2, Type: typ(catalog.Int32)},
		{Name: "f", Number: 3, Type: typ(catalog.Float32)},
		{Name: "d", Number: 4, Type: catalog.Type{Kind: catalog.Decimal, Precision: 9, Scale: 2}},
		{Name: "e", Number: 5, Type: catalog.Type{Kind: catalog.Decimal, Precision: 18, Scale: 2}},
	}}
}

func numbersTable() *catalog.Table {
	return &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "numbers"}, PrimaryKey: []string{"id"}, Current: true, History: true}
}

// widenedNumbers is a lake with numbers of before and after their columns were widened.
func widenedNumbers(t *testing.T, dir string, version format) (*Lake, *catalog.Schema) {
	t.Helper()
	l := open(t, dir)
	was := numbersSchema()
	ls := openLayers(t, l, version, numbersTable(), was)
	f := newFeed(numbersTable(), was)
	f32 := func(v float32) int64 { return int64(math.Float32bits(v)) }
	f64 := func(v float64) int64 { return int64(math.Float64bits(v)) }
	f.commit().create(1, -5, f32(-1.5), -100, -1)
	f.create(2, 7, f32(0.1), 12345, 5)
	f.create(3, nil, nil, nil, nil)
	ls.save(t, f)
	to := numbersSchema()
	to.Version++
	to.Columns[0].Type = typ(catalog.Int64)
	to.Columns[1].Type = typ(catalog.Int64)
	to.Columns[2].Type = typ(catalog.Float64)
	to.Columns[3].Type.Precision = 18
	to.Columns[4].Type.Precision = 38
	require.NoError(t, l.Evolve(t.Context(), source(version), numbersTable(), was, to))
	again, err := l.Reopen(t.Context(), source(version), numbersTable(), to, ls.Layers)
	require.NoError(t, err)
	ls.Layers, ls.schema = again, to
	f.schema = to
	f.take()
	f.commit().create(int64(1)<<40, int64(1)<<50, f64(1e300), int64(1)<<50, wide(1<<40, 7))
	ls.save(t, f)
	return l, to
}

func TestWidenedColumnsAreFilteredByWhatTheyHold(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			l, _ := widenedNumbers(t, t.TempDir(), version)
			for _, kind := range allKinds() {
				v, err := l.View(t.Context(), source(version).LakeName(numbersTable().Name, kind), 0)
				require.NoError(t, err)
				prefix := ""
				if kind == catalog.Bronze {
					prefix = "after."
				}
				for where, n := range map[string]int{
					"id < 3": 2, "id >= 1099511627776": 1, "i = 7": 1, "i < 0": 1, "i > 7": 1, "i is null": 1, "i <> 7": 2,
					"f < 0": 1, "f > 0": 2, "f >= 1e300": 1, "f is not null": 3,
					"d = 123.45": 1, "d < 0": 1, "d > 123.45": 1, "e = 0.05": 1, "e > 1": 1, "e <= -0.01": 1,
				} {
					conditions, err := ParseWhere(prefix + where)
					require.NoError(t, err)
					require.Equal(t, n, scanned(t, v, ScanOptions{Where: conditions}).Len(), "%s: %s", kind, where)
				}
			}
		})
	}
}

// TestIcebergGoFailsOnBoundsFromBeforeAWidening shows why conditions on widened columns
// are met here: iceberg-go 0.7.0 cannot read a long's bound of four bytes. When it fails,
// the library is mended, and View.filter need not ask what was widened.
func TestIcebergGoFailsOnBoundsFromBeforeAWidening(t *testing.T) {
	t.Parallel()
	l, _ := widenedNumbers(t, t.TempDir(), 3)
	v, err := l.View(t.Context(), source(3).LakeName(numbersTable().Name, catalog.Current), 0)
	require.NoError(t, err)
	_, err = v.tbl.Scan(table.WithRowFilter(iceberg.GreaterThan(iceberg.Reference("i"), int64(0)))).ToArrowTable(t.Context())
	require.ErrorContains(t, err, "expected 8 bytes for int64 value, got 4")
	require.Equal(t, 2, scanned(t, v, ScanOptions{Where: []Condition{{Column: "i", Compare: Greater, Value: "0"}}}).Len())
}

// Columns are told apart by what they were called where the source gives no numbers.
func TestColumnsAreFollowedByTheirNames(t *testing.T) {
	t.Parallel()
	col := func(number int, names ...string) catalog.Column {
		return catalog.Column{Name: names[len(names)-1], Was: names[:len(names)-1], Number: number}
	}
	of := func(columns ...catalog.Column) *lineage { return lineageOf(&catalog.Schema{Columns: columns}) }
	for name, c := range map[string]struct {
		was, now *lineage
		want     []int
	}{
		"the same":                     {of(col(0, "a"), col(0, "b")), of(col(0, "b"), col(0, "a")), []int{1, 0}},
		"renamed":                      {of(col(0, "a"), col(0, "b")), of(col(0, "a", "c"), col(0, "b")), []int{0, 1}},
		"renamed twice":                {of(col(0, "a")), of(col(0, "a", "b", "c")), []int{0}},
		"swapped":                      {of(col(0, "a"), col(0, "b")), of(col(0, "a", "b"), col(0, "b", "a")), []int{0, 1}},
		"swapped, and done already":    {of(col(0, "a", "b"), col(0, "b", "a")), of(col(0, "a", "b"), col(0, "b", "a")), []int{0, 1}},
		"swapped back":                 {of(col(0, "a", "b"), col(0, "b", "a")), of(col(0, "a", "b", "a"), col(0, "b", "a", "b")), []int{0, 1}},
		"made room for a new one":      {of(col(0, "a")), of(col(0, "a", "old"), col(0, "a")), []int{0, -1}},
		"the same, by number":          {of(col(1, "a")), of(col(1, "a", "old"), col(2, "a")), []int{0, -1}},
		"a number without a name":      {of(col(1, "a"), col(2, "b")), of(col(1, "c"), col(2, "b")), []int{0, 1}},
		"dropped and added again":      {of(col(1, "a"), col(2, "b")), of(col(3, "a"), col(2, "b")), []int{-1, 1}},
		"a table that was made anew":   {of(col(1, "a"), col(2, "b")), of(col(1, "b"), col(2, "a")), []int{1, 0}},
		"a new one beside":             {of(col(1, "a")), of(col(1, "a"), col(2, "b")), []int{0, -1}},
		"another's former name":        {of(col(1, "a"), col(2, "b")), of(col(2, "b"), col(3, "a", "c"), col(1, "a")), []int{1, -1, 0}},
		"one that took another's name": {of(col(0, "a"), col(0, "b")), of(col(0, "a", "b"), col(0, "b", "c")), []int{0, 1}},
	} {
		require.Equal(t, c.want, c.was.follow(c.now), name)
	}
}

// A table without a key is bronze alone; one that is read from a topic has columns for
// where.
func TestTablesOfEveryKindEvolve(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir())
	keyless := ordersTable()
	keyless.PrimaryKey, keyless.Name.Name = nil, "keyless"
	from := ordersSchema()
	from.Key = nil
	to := edited(func(s *catalog.Schema) {
		s.Key = nil
		rename(s, "status", "state")
		s.Columns = append(s.Columns, catalog.Column{Name: "extra", Number: 9, Type: typ(catalog.Text)})
	})
	openLayers(t, l, 3, keyless, from)
	require.NoError(t, l.Evolve(t.Context(), source(3), keyless, from, to))
	ls := openLayers(t, l, 3, keyless, to)
	f := newFeed(keyless, to)
	f.commit().create(1, "pl", "new", 5, nil, "x")
	_, err := ls.Bronze.Append(t.Context(), []*change.Batch{f.take()}, f.state())
	require.NoError(t, err)

	topics := source(2)
	topics.Capture, topics.Connector = catalog.Debezium, &catalog.Connector{TopicPrefix: "pre"}
	_, err = l.ForSource(topics).Open(t.Context(), ordersTable(), ordersSchema())
	require.NoError(t, err)
	to = edited(func(s *catalog.Schema) { rename(s, "status", "state") })
	require.NoError(t, l.Evolve(t.Context(), topics, ordersTable(), ordersSchema(), to))
	_, err = l.ForSource(topics).Open(t.Context(), ordersTable(), to)
	require.NoError(t, err)

	absent := ordersTable()
	absent.Name.Name = "absent"
	require.NoError(t, l.Evolve(t.Context(), topics, absent, ordersSchema(), to), "what is not there yet is made with the columns of then")
}
