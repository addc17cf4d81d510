package postgres

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// forks maps a timeline to where the next one left it.
type forks map[uint32]catalog.LSN

// parseForks reads a timeline history file: a line for each ancestor, with its
// number and the place where it was left.
func parseForks(history []byte) (forks, error) {
	f := forks{}
	lines := bufio.NewScanner(bytes.NewReader(history))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("line %q of the timeline's history is not understood", lines.Text())
		}
		timeline, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %q of the timeline's history is not understood", lines.Text())
		}
		lsn, err := catalog.ParseLSN(fields[1])
		if err != nil {
			return nil, err
		}
		f[uint32(timeline)] = lsn
	}
	return f, lines.Err()
}

// continues reports whether a cursor belongs to the log that is read now, which
// ends at end, or why it does not.
func continues(cursor catalog.Cursor, now catalog.Epoch, history forks, end catalog.LSN) (ok bool, why string) {
	at := cursor.Position.Commit
	switch {
	case cursor.Epoch.System != now.System:
		return false, fmt.Sprintf("another cluster answers: system %s instead of %s", now.System, cursor.Epoch.System)
	case cursor.Epoch.Timeline == now.Timeline:
		if at > end {
			return false, fmt.Sprintf("the server's log ends at %s, before what was read up to %s: an older state was restored", end, at)
		}
		return true, ""
	case cursor.Epoch.Timeline > now.Timeline:
		return false, fmt.Sprintf("the server is on timeline %d, the lake was on the later %d: an older state was restored", now.Timeline, cursor.Epoch.Timeline)
	}
	left, known := history[cursor.Epoch.Timeline]
	if !known {
		return false, fmt.Sprintf("timeline %d is no ancestor of the server's timeline %d", cursor.Epoch.Timeline, now.Timeline)
	}
	if at >= left {
		return false, fmt.Sprintf("timeline %d was left at %s, before what was read up to %s: what came after is not in the server's log", cursor.Epoch.Timeline, left, at)
	}
	return true, ""
}

// anew is what heals a gap for now.
const anew = "to read the table anew, drop its tables in the lake (their history goes with them) and start the worker; see docs/runbooks/slot-lost.md"

// gapError says that changes are missing for a table.
func gapError(t *catalog.Table, why string) *catalog.Error {
	e := catalog.Errorf(catalog.Conflict, catalog.CodeGap, anew, "changes are missing: %s", why)
	e.At = t.ID()
	return e
}
