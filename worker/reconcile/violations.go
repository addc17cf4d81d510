package reconcile

import (
	"fmt"
	"time"
)

// shownViolations bounds how many are told in words; all are counted.
const shownViolations = 20

// violations counts what is wrong with the layers, and tells some of it.
type violations struct {
	count int64
	shown []violation
}

// violation is one thing that is wrong, of the key with the digest or, when it is
// zero, of the table.
type violation struct {
	key  digest
	what string
}

func (v *violations) add(key digest, format string, args ...any) {
	v.count++
	if len(v.shown) < shownViolations {
		v.shown = append(v.shown, violation{key, fmt.Sprintf(format, args...)})
	}
}

func (v *violations) join(o violations) {
	v.count += o.count
	v.shown = append(v.shown, o.shown...)
	v.shown = v.shown[:min(len(v.shown), shownViolations)]
}

// instant prints microseconds since 1970 UTC for a message.
func instant(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z")
}
