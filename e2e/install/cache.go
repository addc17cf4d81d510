package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Cache is the repository's .cache folder, which is made when it is absent.
func Cache() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			cache := filepath.Join(dir, ".cache")
			return cache, os.MkdirAll(cache, 0o750)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no go.mod above the working folder")
		}
		dir = up
	}
}

// Once runs install unless ready says that it was done, by one process at a time. A
// lock beside target, which install makes, keeps others waiting, for ten minutes at
// most.
func Once(ctx context.Context, target string, ready func() bool, install func() error) error {
	if ready() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	lock := target + ".lock"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		err := os.Mkdir(lock, 0o750)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is held by another installation; remove it if there is none", lock)
		}
	}
	defer os.Remove(lock)
	if ready() {
		return nil
	}
	if err := install(); err != nil {
		return err
	}
	if !ready() {
		return fmt.Errorf("%s was installed and does not work", target)
	}
	return nil
}

// Venv returns the interpreter of a Python environment in dir in which probe runs,
// installing packages when it does not.
func Venv(ctx context.Context, dir, probe string, packages ...string) (string, error) {
	bin := filepath.Join(dir, "bin", "python")
	ready := func() bool { return exec.CommandContext(ctx, bin, "-c", probe).Run() == nil }
	err := Once(ctx, dir, ready, func() error {
		if err := Run(ctx, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return Run(ctx, bin, append([]string{"-m", "pip", "install", "-q"}, packages...)...)
	})
	return bin, err
}

// Run runs a command; its error has what the command said.
func Run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
