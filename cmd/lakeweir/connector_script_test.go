package main

import (
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lakeweir/lakeweir/orchestrator/connect/connecttest"
)

// TestConnectorScripts runs testdata/connector: commands against a Kafka Connect that
// answers as the real one. The command "connect" starts one and names it in CONNECT_URL;
// "connect fail NAME TRACE" lets a task fail, "connect busy N" the next requests meet a
// rebalance, "connect refuse WHY" refuses configurations.
func TestConnectorScripts(t *testing.T) {
	t.Parallel()
	var servers sync.Map // by URL
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/connector",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status,
			"connect": func(ts *testscript.TestScript, _ bool, args []string) {
				if len(args) == 0 {
					s := connecttest.New(t)
					servers.Store(s.URL, s)
					ts.Setenv("CONNECT_URL", s.URL)
					return
				}
				found, ok := servers.Load(ts.Getenv("CONNECT_URL"))
				if !ok {
					ts.Fatalf("connect first")
				}
				s := found.(*connecttest.Server)
				switch args[0] {
				case "fail":
					s.FailTask(args[1], args[2])
				case "busy":
					n, err := strconv.Atoi(args[1])
					ts.Check(err)
					s.Busy(n)
				case "refuse":
					s.Refuse(args[1])
				default:
					ts.Fatalf("connect %s is unknown", args[0])
				}
			},
		},
	})
}
