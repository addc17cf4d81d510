package debezium

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Debezium has a placeholder for a large value that did not change in some types only. Of
// the others, here called mute, it sends NULL, as if that were the value. Under REPLICA
// IDENTITY FULL it has the value and sends it.

// speaking are the types whose arrays have a placeholder.
var speaking = map[string]bool{
	"text": true, "varchar": true, "bpchar": true, "json": true, "jsonb": true, "int4": true, "int8": true, "date": true, "uuid": true,
}

// inline are types whose values are never large.
var inline = map[string]bool{
	"pg_lsn": true, "xid": true, "xid8": true, "cid": true, "tid": true, "aclitem": true, "oidvector": true, "int2vector": true,
	"line": true, "lseg": true, "box": true, "circle": true,
}

// What fewer bits or digits hold is never moved out of its row.
const (
	inlineBits   = 256
	inlineDigits = 100
)

// isMute reports whether a large value of the column that did not change comes as NULL.
func (c *column) isMute() bool {
	switch c.family {
	case familyVarbit:
		return true
	case familyBit:
		return c.length > inlineBits
	case familyNumeric:
		m := c.source.Modifier - 4
		return c.precise && (m < 0 || m>>16 > inlineDigits)
	case familyBytes, familyOpaque, familyGeometric:
		return c.binary != Bytes && !inline[c.source.Base] && !strings.HasPrefix(c.source.Base, "reg")
	case familyList, familyListText:
		if c.elem == nil || c.elem.domain {
			return true
		}
		return !speaking[c.elem.source.Base] && (c.elem.source.Base != "bytea" || c.binary != Bytes)
	case familyText, familyBool, familyInt, familyIntText, familyFloat, familyMoney, familyDate, familyTime, familyTimeTZ, familyTimestamp,
		familyTimestampTZ, familyInterval, familyUUID, familyHstore, familyPoint:
	}
	return false
}

// listen looks for NULLs in the new row of a change that may be values that did not change.
// In a column that cannot be NULL they are; in another, nobody can tell.
func (d *Decoder) listen(ev *Event, rows *change.Rows) error {
	if d.cfg.FullIdentity || ev.Op != change.Update && !ev.MovedFrom {
		return nil
	}
	for _, col := range d.used.mute {
		if rows.Mark(ev.After, col) != change.Null {
			continue
		}
		if c := &d.cfg.Schema.Columns[col]; c.Nullable {
			hint := "ALTER TABLE … REPLICA IDENTITY FULL, then pass by what came before or read the table anew"
			if f := d.used.columns[col].family; f == familyBytes || f == familyOpaque || f == familyGeometric {
				hint = "set binary.handling.mode to bytes; or " + hint
			}
			return catalog.Errorf(catalog.Invalid, catalog.CodeIdentityChange, hint,
				"column %s (%s) of an update is NULL, or a large value that did not change: Debezium sends NULL for both", c.Name, c.Source.Name)
		}
		rows.SetMark(ev.After, col, change.Unavailable)
	}
	return nil
}

// listPlaceholders are the lists in JSON that stand for a large value that did not change.
func listPlaceholders(placeholder string) []string {
	codes := make([]string, 0, len(placeholder))
	for _, b := range []byte(placeholder) {
		codes = append(codes, strconv.Itoa(int(b)))
	}
	return []string{
		`["` + placeholder + `"]`, `["` + base64.StdEncoding.EncodeToString([]byte(placeholder)) + `"]`, "[" + strings.Join(codes, ",") + "]",
	}
}
