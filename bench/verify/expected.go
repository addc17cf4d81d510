package verify

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/lakeweir/lakeweir/bench/workload"
)

// writeRows writes a table's expected rows as JSON lines.
func writeRows(file string, o *workload.Outcome, table string) error {
	return write(file, func(w *bufio.Writer) {
		for row := range o.Rows(table) {
			_, _ = w.Write(row.JSON[:len(row.JSON)-1]) // an error stays in the writer
			fmt.Fprintf(w, `,"_op":"%c","_lsn":%d,"_tx_id":%d,"_source_ms":%d,"_from_snapshot":%t}`+"\n", row.Op, row.LSN, row.TxID, row.CommitMilli, row.Op == 'r')
		}
	})
}

func writeVersions(file string, o *workload.Outcome) error {
	return write(file, func(w *bufio.Writer) {
		out := json.NewEncoder(w)
		for v := range o.Versions() {
			line := map[string]any{
				"order_id": v.OrderID, "status": v.Status, "total_minor": v.TotalMinor, "from_ms": v.From, "to_ms": nil, "is_current": v.To == 0, "_lsn": v.LSN,
			}
			if v.To != 0 {
				line["to_ms"] = v.To
			}
			_ = out.Encode(line) // as above
		}
	})
}

func write(file string, lines func(w *bufio.Writer)) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	lines(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
