// Package localpg runs a private Postgres server for the demo and for tests.
//
// It finds the binaries (a given folder, an installed Postgres, else a download),
// makes a data directory, starts the server on 127.0.0.1 and waits until it
// answers. It promises three things: it works as root, by running Postgres as
// another user; the server never outlives this process, even when this process
// is killed with SIGKILL; and a second Start on the same folder goes on with the
// same data, whatever ended the first one. What is in the databases is left to
// the callers.
package localpg

import (
	"log/slog"
	"maps"
	"slices"
)

// Config says where a server lives and how it is set.
type Config struct {
	// Dir holds the data directory, the log and a lock. It is made when absent
	// and reused when it has data. Required. One process at a time may use it.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one, another at each start.
	Port int
	// Settings are passed as -c name=value and win over the defaults: logical
	// replication on, commit timestamps on, times in UTC.
	Settings map[string]string
	// Logger tells what is downloaded, made and started; nil discards it. The
	// server's own messages go to postgres.log in Dir.
	Logger *slog.Logger
	// Binaries is the folder that holds initdb and postgres, version 14 or later.
	// Empty: PATH, pg_config, the usual folders of packages, else a download
	// (about 15 MB, kept for the next time).
	Binaries string
	// RemoveDir removes Dir once the server has ended, also when this process was
	// killed. For tests.
	RemoveDir bool
}

// WithDefaults returns c with what was left empty filled in.
func (c Config) WithDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	settings := map[string]string{
		"wal_level":              "logical",
		"max_replication_slots":  "64",
		"max_wal_senders":        "64",
		"max_connections":        "200",
		"track_commit_timestamp": "on",
		"timezone":               "UTC",
		"log_timezone":           "UTC",
	}
	maps.Copy(settings, c.Settings)
	// Not for the caller to choose: reachable from this machine only, and no
	// socket files whose paths may be too long.
	settings["listen_addresses"] = "127.0.0.1"
	settings["unix_socket_directories"] = ""
	c.Settings = settings
	return c
}

// arguments are the -c arguments of the settings, in a fixed order.
func arguments(settings map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
