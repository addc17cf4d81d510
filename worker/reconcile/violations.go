package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// shownViolations bounds how many are told in words; all are counted.
const shownViolations = 20

// violations counts what is wrong with the layers, and tells some of it.
type violations struct {
	count int64
	shown []violation
	keys  map[digest]struct{} // that something is wrong with, up to MaxKeys
}

// violation is one thing that is wrong, of the key with the digest or, when it is
// zero, of the table.
type violation struct {
	key  digest
	what string
}

func (v *violations) add(key digest, format string, args ...any) {
	v.count++
	v.note(key)
	if len(v.shown) < shownViolations {
		v.shown = append(v.shown, violation{key, fmt.Sprintf(format, args...)})
	}
}

func (v *violations) note(key digest) {
	if key == (digest{}) || len(v.keys) >= MaxKeys {
		return
	}
	if v.keys == nil {
		v.keys = map[digest]struct{}{}
	}
	v.keys[key] = struct{}{}
}

// clone returns a copy that goes its own way.
func (v *violations) clone() violations {
	out := *v
	out.shown = slices.Clip(out.shown)
	out.keys = maps.Clone(v.keys)
	return out
}

func (v *violations) join(o violations) {
	v.count += o.count
	for key := range o.keys {
		v.note(key)
	}
	v.shown = append(v.shown, o.shown...)
	v.shown = v.shown[:min(len(v.shown), shownViolations)]
}

// instant prints microseconds since 1970 UTC for a message.
func instant(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z")
}
