package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// oldest is the lowest major version that Lakeweir supports.
const oldest = 14

// install is one set of Postgres binaries.
type install struct {
	dir   string // holds initdb and postgres
	major int
}

// binaries chooses the binaries to run. want is the major version of existing
// data, or 0 when any will do.
func binaries(ctx context.Context, cfg Config, who *identity, want int) (install, error) {
	if cfg.Binaries != "" {
		in, err := inspect(ctx, cfg.Binaries)
		if err == nil {
			err = in.suits(want)
		}
		if err != nil {
			return install{}, catalog.Errorf(catalog.Invalid, catalog.CodeUsage,
				"name a folder that holds initdb and postgres, version 14 or later",
				"Postgres in %s cannot be used: %w", cfg.Binaries, err)
		}
		return in, nil
	}
	var best install
	for _, dir := range candidates(ctx) {
		in, err := inspect(ctx, dir)
		if err != nil || in.suits(want) != nil || !who.reaches(ctx, in.dir) {
			continue
		}
		if in.major > best.major {
			best = in
		}
	}
	if best.major != 0 {
		return best, nil
	}
	dir, err := download(ctx, cfg.Logger)
	if err == nil {
		best, err = inspect(ctx, dir)
	}
	if err == nil {
		err = best.suits(want)
	}
	if err == nil && !who.reaches(ctx, dir) {
		err = fmt.Errorf("the user %d, as whom Postgres must run, may not enter %s", who.uid, dir)
	}
	if err != nil {
		return install{}, catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable,
			"install Postgres 14 or later (Debian: apt-get install postgresql), or give the connection string of a running one with --dsn",
			"no Postgres to run: none is installed, and the download did not serve: %w", err)
	}
	return best, nil
}

// suits reports why binaries of this version cannot run data of version want.
func (in install) suits(want int) error {
	if in.major < oldest {
		return fmt.Errorf("it is version %d, which is older than %d", in.major, oldest)
	}
	if want != 0 && in.major != want {
		return fmt.Errorf("it is version %d, the existing data was made by version %d", in.major, want)
	}
	return nil
}

// candidates lists folders that may hold installed binaries.
func candidates(ctx context.Context) []string {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		// What stands on PATH may be a link into the folder that has the rest.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian
		"/usr/pgsql-*/bin",                                   // Red Hat
		"/usr/libexec/postgresql*",                           // Alpine
		"/usr/local/opt/postgresql@*/bin",                    // Homebrew, Intel
		"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew, Apple silicon
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/usr/local/pgsql/bin",                               // built from source
	} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, found...)
	}
	return dirs
}

var versionOutput = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect looks for initdb and postgres in dir and asks their version.
func inspect(ctx context.Context, dir string) (install, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return install{}, fmt.Errorf("look for %s: %w", name, err)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // running a given Postgres is the purpose
	if err != nil {
		return install{}, fmt.Errorf("ask its version: %w", err)
	}
	m := versionOutput.FindSubmatch(out)
	if m == nil {
		return install{}, errors.New("it does not tell its version")
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return install{}, fmt.Errorf("read its version: %w", err)
	}
	return install{dir: dir, major: major}, nil
}
