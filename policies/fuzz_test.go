package policies

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
)

// FuzzOrganisation: whatever stands in an organisation's file, loading ends, every
// question is answered, and what another source is asked does not depend on it when the
// file is about one source alone.
func FuzzOrganisation(f *testing.F) {
	_ = fs.WalkDir(files, ".", func(file string, _ fs.DirEntry, _ error) error {
		if text, err := files.ReadFile(file); err == nil {
			f.Add(string(text))
		}
		return nil
	})
	for _, body := range []string{phoneIsFine, endless, "package organisation.schema\nverdicts contains v if v := input", "package organisation.settings\ntiers := 1", "package a.b[\"c\"]\nx := 1"} {
		f.Add(body)
	}
	table := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"id"}}
	source := &catalog.Source{Name: "shop", Kind: catalog.Postgres, Capture: catalog.Direct}
	proposal := schemadiff.Proposal{Add: []string{"note text"}}
	changes, err := proposal.Changes(table)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := Load(fstest.MapFS{"a.rego": {Data: []byte(text)}}, "org").WithLimit(50 * time.Millisecond)
		for _, e := range p.Check() {
			if e.Message == "" || e.Code == "" {
				t.Errorf("a problem that says nothing: %+v", e)
			}
		}
		d, err := p.Decide(t.Context(), source, table, changes)
		if err != nil || len(d.Judgements) != 1 || d.Judgements[0].Rule == "" {
			t.Fatalf("%+v %v", d, err)
		}
		if _, err := p.CheckConfig(t.Context(), source, table); err != nil && catalog.Public(err).Code == catalog.CodeInternal {
			t.Fatal(err)
		}
	})
}
