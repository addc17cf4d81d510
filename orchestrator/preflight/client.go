package preflight

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/kafkaclient"
)

// NewClient makes a client for a source's brokers that gives up soon; password is that of
// kafka.sasl, resolved. It sends nothing; the caller closes it.
func NewClient(source *catalog.Source, password catalog.Secret) (*kgo.Client, error) {
	return kafkaclient.New(source, password, kgo.DialTimeout(10*time.Second), kgo.RequestRetries(2))
}

func isUnknown(err error) bool { return errors.Is(err, kerr.UnknownTopicOrPartition) }
