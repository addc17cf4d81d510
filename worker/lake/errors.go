package lake

import (
	"context"
	"errors"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// unavailable turns what a catalog or warehouse answered into the error that a
// person sees. An error that has a code already, or that only says that the caller
// gave up, is returned as it is.
func (l *Lake) unavailable(err error, doing string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*catalog.Error](err); ok {
		return err
	}
	return &catalog.Error{
		Kind:    catalog.Unavailable,
		Code:    catalog.CodeLakeUnavailable,
		Message: doing + ": " + l.redact(err.Error()),
		Hint:    "check that the catalog and the warehouse are reachable and accept these credentials; the work is tried again",
		Err:     err,
	}
}

// redact takes the configured secrets out of a text.
func (l *Lake) redact(text string) string {
	for _, s := range l.secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}
