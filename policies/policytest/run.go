package policytest

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/policies"
)

// Result is what came of one case or test.
type Result struct {
	Name string `json:"name"`
	At   string `json:"at"` // file and line
	Ours bool   `json:"ours"`
	OK   bool   `json:"ok"`
	Got  string `json:"got,omitempty"`  // "evolve (column_added)"
	Want string `json:"want,omitempty"` // what is wrong, when it failed
}

// Run runs Lakeweir's cases and tests, then an organisation's; org may be nil. The
// error is ctx's, or that of a file of cases that cannot be read.
func Run(ctx context.Context, org fs.FS, root string) ([]Result, error) {
	ours := policies.BuiltIn()
	results, err := run(ctx, ours, policies.Files(), "")
	if err != nil {
		return nil, err
	}
	for i := range results {
		results[i].Ours = true
	}
	if org == nil {
		return results, nil
	}
	theirs, err := run(ctx, policies.Load(org, root), org, root)
	return append(results, theirs...), err
}

// run runs the cases in a folder, then the tests of the policies.
func run(ctx context.Context, p *policies.Policies, fsys fs.FS, root string) ([]Result, error) {
	var out []Result
	err := fs.WalkDir(fsys, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return catalog.Invalidf(catalog.CodePolicyFile, path.Join(root, file), "make it readable", "cannot be read: %w", err)
		case file != "." && strings.HasPrefix(path.Base(file), ".") && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, "_cases.yaml") || root != "" && policies.IsOurs(fsys, file):
			return nil
		}
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return catalog.Invalidf(catalog.CodePolicyFile, path.Join(root, file), "make it readable", "cannot be read: %w", err)
		}
		f, err := readCases(path.Join(root, file), text)
		if err != nil {
			return err
		}
		for i := range f.Cases {
			c := &f.Cases[i]
			got, wrong, err := c.ask(ctx, p, f)
			if err != nil {
				return err
			}
			out = append(out, Result{Name: c.Case, At: fmt.Sprintf("%s:%d", path.Join(root, file), c.line), OK: wrong == "", Got: got, Want: wrong})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tests, err := p.RunTests(ctx)
	for _, t := range tests {
		r := Result{Name: t.Name, At: t.At, OK: t.Failure == "", Got: "true", Want: t.Failure}
		if !r.OK {
			r.Got = ""
		}
		out = append(out, r)
	}
	return out, err
}
