package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/tableconfigs"
)

// lockDemo makes sure that one demo at a time runs in a folder. The system gives
// the lock back when the process ends, however it ends.
func lockDemo(dir string) (release func(), err error) {
	name := filepath.Join(dir, "demo.lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "give another folder with --dir", "the folder for the demo cannot be written to: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid := make([]byte, 20)
		n, _ := f.Read(pid)
		_ = f.Close()
		return nil, catalog.Errorf(catalog.Conflict, catalog.CodeUsage, "stop it first, or give another folder with --dir",
			"another demo (process %s) runs in %s", strings.TrimSpace(string(pid[:n])), dir)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the demo's folder: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// readTokenKey returns the demo's key, made at the first start.
func (s *shop) readTokenKey() (catalog.Secret, error) {
	file := filepath.Join(s.dir, "token.key")
	b, err := os.ReadFile(file)
	if err == nil {
		return catalog.Secret(strings.TrimSpace(string(b))), nil
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	text := hex.EncodeToString(key)
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the demo's token key: %w", err)
	}
	return catalog.Secret(text), nil
}

// copyConfigs writes the shop's files, leaving what is there: they may be edited.
func copyConfigs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // configuration, for everybody to read
		return fmt.Errorf("make the folder of the shop's configuration: %w", err)
	}
	return fs.WalkDir(tableconfigs.Files, "shop", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		to := filepath.Join(dir, filepath.Base(path))
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		b, err := tableconfigs.Files.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644) //nolint:gosec // configuration, for everybody to read
	})
}
