package connect

import (
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Sentence says in one line how a connector is: "RUNNING, task 0 FAILED: …".
func Sentence(s *catalog.ConnectorStatus) string {
	var b strings.Builder
	b.WriteString(string(s.State))
	switch {
	case len(s.Tasks) == 0 && s.State == catalog.ConnectorRunning:
		b.WriteString(", no task yet")
	default:
		for _, t := range s.Tasks {
			fmt.Fprintf(&b, ", task %d %s", t.ID, t.State)
		}
	}
	if why := s.Reason(); why != "" {
		b.WriteString(": " + why)
	}
	return b.String()
}
