package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

// storyEvery is how often the demo says how it goes.
const storyEvery = 10 * time.Second

// narrate says when the first rows can be queried and how, then now and then how
// things go, and at once when a table stops or goes on.
func (s *shop) narrate(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	first, said := true, time.Time{}
	stopped := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !first && time.Since(said) < storyEvery/10 {
			continue
		}
		fleet, err := s.registry.Fleet(ctx)
		if err != nil {
			continue
		}
		report := monitor.Judge(fleet)
		if first {
			if first = !s.announce(fleet); !first {
				said = time.Now()
			}
			continue
		}
		for _, line := range stops(report, stopped) {
			s.say("%s", line)
		}
		if time.Since(said) >= storyEvery {
			said = time.Now()
			s.say("%s", statusLine(report))
		}
	}
}

// announce says how to query the first rows; false while there are none.
func (s *shop) announce(fleet *registry.Fleet) bool {
	for i := range fleet.Tables {
		if t := &fleet.Tables[i]; t.Totals.CurrentRows > 0 {
			s.say("lake      first rows can be queried after %.1f s:", time.Since(s.started).Seconds())
			s.say("          %s scan %s --limit 5 \\\n              --catalog %s \\\n              --warehouse %s",
				shellWord(os.Args[0]), t.Config.CurrentTable, shellWord(s.lake.Catalog), shellWord(s.lake.Warehouse))
			if s.opts.DSN == "" { // else whoever gave it knows it, and it may hold a password
				s.say("          for get, describe and status: export LAKEWEIR_REGISTRY='%s'", s.regDSN)
			}
			return true
		}
	}
	return false
}

// stops returns a line for each table that has stopped, or goes on again, since the
// last call; known keeps what was said.
func stops(report *monitor.Report, known map[string]string) []string {
	var lines []string
	for i := range report.Tables {
		t := &report.Tables[i]
		reason := ""
		if t.Health == monitor.Quarantined {
			reason = whyText(t, report.Now)
		}
		if reason == known[t.ID()] {
			continue
		}
		known[t.ID()] = reason
		if reason == "" {
			lines = append(lines, "goes on   "+t.ID())
		} else {
			lines = append(lines, "stopped   "+t.ID()+": "+reason)
		}
	}
	return lines
}

// shellWord quotes what a shell would take apart.
func shellWord(s string) string {
	if !strings.ContainsAny(s, " \t'\"\\$&;()<>|*?[]#~`!") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
