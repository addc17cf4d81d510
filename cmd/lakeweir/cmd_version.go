package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the build: -ldflags "-X main.version=v0.1.0 -X main.commit=…".
var (
	version string
	commit  string
)

// buildVersion is what the program knows of its own making.
type buildVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"commitTime,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from uncommitted files
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return runVersion(app, readBuildVersion())
		},
	}
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func runVersion(app *App, v buildVersion) error {
	if app.Output == "json" {
		return printJSON(app.Stdout, v)
	}
	line := "lakeweir " + v.Version
	if v.Commit != "" {
		line += " (" + v.Commit[:min(12, len(v.Commit))]
		if v.Time != "" {
			line += ", " + v.Time
		}
		if v.Modified {
			line += ", modified"
		}
		line += ")"
	}
	_, err := fmt.Fprintf(app.Stdout, "%s %s %s\n", line, v.Go, v.Platform)
	return err
}

func readBuildVersion() buildVersion {
	v := buildVersion{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v.Version == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "dev"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			if v.Commit == "" {
				v.Commit = s.Value
			}
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
