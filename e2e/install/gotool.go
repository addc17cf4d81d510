package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// GoTool returns the path of a program that is built from a Go module at a version,
// which takes minutes for the first time.
func GoTool(ctx context.Context, pkg, version string) (string, error) {
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "bin", path.Base(pkg)+"-"+version)
	ready := func() bool { _, err := os.Stat(bin); return err == nil }
	return bin, Once(ctx, bin, ready, func() error {
		scratch, err := os.MkdirTemp(filepath.Dir(bin), "build-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", pkg+"@"+version) //nolint:gosec // a package that our own code names
		cmd.Env = append(os.Environ(), "GOBIN="+scratch, "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", pkg, err, out)
		}
		return os.Rename(filepath.Join(scratch, path.Base(pkg)), bin)
	})
}
