package localpg

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloaded is the version that is fetched when none is installed.
const downloaded = embeddedpostgres.V18

// download fetches Postgres into a cache, unless it is there, and returns the
// folder of its binaries.
func download(ctx context.Context, logger *slog.Logger) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "postgres-"+string(downloaded))
	bin := filepath.Join(root, "bin")
	if _, err := inspect(ctx, bin); err == nil {
		return bin, nil
	}
	logger.InfoContext(ctx, "downloading postgres", "version", string(downloaded), "into", root)
	scratch, err := os.MkdirTemp(cache, "unpack-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the download: %w", err)
	}
	unpacked := filepath.Join(scratch, "postgres")
	done := make(chan error, 1)
	go func() {
		defer func() { _ = os.RemoveAll(scratch) }()
		done <- fetch(ctx, scratch, unpacked, root)
	}()
	select {
	case err := <-done:
		return bin, err
	case <-ctx.Done():
		return "", fmt.Errorf("download Postgres %s: %w", downloaded, ctx.Err())
	}
}

// fetch lets the library download and unpack, then moves the result to root in
// one step, so that a half unpacked folder is never taken for a whole one.
func fetch(ctx context.Context, scratch, unpacked, root string) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloaded).
		Port(uint32(port)).
		CachePath(scratch).
		RuntimePath(filepath.Join(scratch, "run")).
		DataPath(filepath.Join(scratch, "data")).
		BinariesPath(unpacked).
		Logger(io.Discard))
	// Only Start makes the library download. It goes on to run a server, which we
	// do not want, and which it refuses as root: only the binaries count here.
	startErr := server.Start()
	if startErr == nil {
		if err := server.Stop(); err != nil {
			return fmt.Errorf("stop the trial run of the downloaded Postgres: %w", err)
		}
	}
	if _, err := inspect(ctx, filepath.Join(unpacked, "bin")); err != nil {
		if startErr != nil {
			err = startErr
		}
		return fmt.Errorf("download Postgres %s: %w", downloaded, err)
	}
	if err := os.Rename(unpacked, root); err != nil {
		// Another process may have been faster.
		if _, present := inspect(ctx, filepath.Join(root, "bin")); present == nil {
			return nil
		}
		return fmt.Errorf("keep the downloaded Postgres: %w", err)
	}
	return nil
}

// cacheDir is where the download stays. As root it must be a folder that the
// user who runs Postgres can enter, which root's home is not.
func cacheDir() (string, error) {
	var dir string
	if os.Geteuid() == 0 {
		dir = "/var/cache/lakeweir"
	} else {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a folder for the download: %w", err)
		}
		dir = filepath.Join(base, "lakeweir")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // others must be able to read the binaries
		return "", fmt.Errorf("make a folder for the download: %w", err)
	}
	return dir, nil
}
