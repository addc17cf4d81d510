// Package stacktest runs the stack for a test, and shows what its services printed
// when the test fails.
package stacktest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lakeweir/lakeweir/e2e/stack"
)

// Require skips a test outside of `make e2e`.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv("LAKEWEIR_E2E") == "" {
		t.Skip("runs under make e2e only (LAKEWEIR_E2E is not set): it installs real services and takes minutes")
	}
}

// Start runs the services that cfg asks for until the test ends; Dir and Told of cfg
// are not for the caller. When the test fails, the ends of the logs are printed and
// the logs stay.
func Start(t testing.TB, cfg stack.Config) *stack.Stack {
	t.Helper()
	Require(t)
	dir, err := os.MkdirTemp("", "lakeweir-stack-") //nolint:usetesting // the logs stay when the test fails
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dir, cfg.Told = dir, t.Logf
	s, err := stack.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("the stack does not start; what it wrote is in %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("end the stack: %v", err)
		}
		if !t.Failed() {
			_ = os.RemoveAll(dir)
			return
		}
		for _, log := range s.Logs() {
			if tail := stack.Tail(log, 40); tail != "" {
				t.Logf("the end of %s:\n%s", log, tail)
			}
		}
		keepLogs(dir)
	})
	return s
}

// keepLogs removes the services' data, which is large.
func keepLogs(dir string) {
	for _, data := range []string{"kafka", "s3", "catalog", "connect", filepath.Join("postgres", "data")} {
		_ = os.RemoveAll(filepath.Join(dir, data))
	}
}
