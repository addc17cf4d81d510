package e2e

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// What make demo-debezium starts: the demo through real Kafka and Debezium, whose worker
// is killed, shows its page, ends equal to its source, and history equals the audit's.
// In a long run it is started once more, and goes on.
func TestTheDemoThroughDebeziumIsEqual(t *testing.T) {
	stacktest.Require(t)
	bin := program(t)
	starter := filepath.Join(t.TempDir(), "demo")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", starter, "./demo").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir, err := os.MkdirTemp("", "lakeweir-demo-") //nolint:usetesting // the logs stay when the test fails, and Postgres must reach it
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	starts := 1
	if os.Getenv("LAKEWEIR_E2E_LONG") != "" {
		starts = 2
	}
	for range starts {
		said := runDemo(t, starter, bin, "--dir", dir, "--duration", "15s", "--rate", "200", "--orders", "500", "--kill-every", "4s", "--verify", "--listen", "127.0.0.1:0")
		histories := 0
		for _, line := range said {
			if strings.Contains(line, "differing=") {
				require.Contains(t, line, "differing=0")
			}
			if strings.Contains(line, "history: audit=") {
				histories++
			}
		}
		require.Equal(t, 6, histories, "tables with a history in tableconfigs/shop")
		require.Contains(t, strings.Join(said, "\n"), "Debezium on http://127.0.0.1:")
	}
}

// runDemo runs it to its end, asks for its page, and returns the lines that it says.
func runDemo(t *testing.T, name string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said []string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		t.Log(lines.Text())
		said = append(said, lines.Text())
		if url, ok := strings.CutPrefix(lines.Text(), "page      "); ok {
			requirePage(t, url)
		}
	}
	require.NoError(t, lines.Err())
	require.NoError(t, cmd.Wait())
	return said
}

// requirePage requires that the page has the shop's tables.
func requirePage(t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	for _, table := range demo.Tables() {
		require.Contains(t, string(body), table)
	}
}
