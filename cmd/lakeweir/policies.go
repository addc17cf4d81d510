package main

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/policies"
)

// policiesFlag gives cmd the --policies flag.
func (app *App) policiesFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "policies", app.env("LAKEWEIR_POLICIES", ""), "folder of the organisation's policies; default: a folder policies beside the sources' folder (or LAKEWEIR_POLICIES)")
}

// loadPolicies reads the organisation's policies beside Lakeweir's: those of the named
// folder, else of one that lies beside a folder of configurations. used is the folder,
// "" when there is none.
func loadPolicies(named, configs string) (p *policies.Policies, used string, err error) {
	if named == "" {
		named = policiesBeside(configs)
	} else if err := isFolder(named); err != nil {
		return nil, "", err
	}
	if named == "" {
		return policies.BuiltIn(), "", nil
	}
	p = policies.LoadDir(named)
	if len(p.Files()) == 0 && len(p.Problems()) == 0 {
		return p, "", nil
	}
	return p, filepath.ToSlash(filepath.Clean(named)), nil
}

func isFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	return catalog.Invalidf(catalog.CodePolicyFile, dir, "name the folder of the organisation's policies", "there is no such folder")
}

// policiesBeside returns the folder called policies that belongs to a folder of sources
// or of one source: in it or beside it, the nearest that holds a policy.
func policiesBeside(configs string) string {
	candidates := []string{filepath.Join(configs, "policies"), filepath.Join(configs, "..", "policies")}
	if _, err := os.Stat(filepath.Join(configs, "source.yaml")); err == nil {
		candidates = append(candidates, filepath.Join(configs, "..", "..", "policies"))
	}
	i := slices.IndexFunc(candidates, holdsPolicies)
	if i < 0 {
		return ""
	}
	return candidates[i]
}

func holdsPolicies(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipAll
		}
		if found = !d.IsDir() && strings.HasSuffix(path, ".rego"); found {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// policyProblems are the problems of policies in the form of those of configurations.
func policyProblems(list []*catalog.Error) tableconfig.Problems {
	var out tableconfig.Problems
	for _, e := range list {
		file, line, column := policies.Place(e.At)
		out = append(out, &tableconfig.Problem{Code: e.Code, File: cmp.Or(file, "policies"), Line: line, Column: column, Message: e.Message, Hint: e.Hint})
	}
	return out
}
