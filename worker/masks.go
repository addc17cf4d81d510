package worker

import (
	"errors"
	"sync"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/privacy"
)

// masks makes the maskers of a source's tables and seals what a snapshot must
// remember of a masked key.
type masks struct {
	key    []byte
	sealer *privacy.Sealer // nil when no table tokenizes

	mu   sync.Mutex
	text *privacy.Text // under mu; nil when no table tokenizes
}

func newMasks(tables []*catalog.Table, key catalog.Secret) (*masks, error) {
	m := &masks{key: []byte(key.Reveal())}
	for _, t := range tables {
		for _, p := range t.PII {
			if p != catalog.Tokenize || m.sealer != nil {
				continue
			}
			var err error
			if m.sealer, err = privacy.NewSealer(m.key); err != nil {
				return nil, err
			}
			if m.text, err = privacy.NewText(m.key); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (m *masks) mask(table *catalog.Table, schema *catalog.Schema) (pipeline.Mask, error) {
	if len(table.PII) == 0 {
		return nil, nil //nolint:nilnil // nothing to mask
	}
	return privacy.New(table, schema, m.key)
}

func (m *masks) seal(_ string, plain []byte) string { return m.sealer.Seal(plain) }

// maskText returns what the lake shows for a text of a masked column.
func (m *masks) maskText(p catalog.Protection, text string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.text == nil {
		return "", errors.New("no token key to mask with")
	}
	out, err := m.text.Append(nil, p, []byte(text))
	return string(out), err
}

func (m *masks) unseal(_, sealed string) ([]byte, error) {
	if m.sealer == nil {
		return nil, errors.New("no token key to open a sealed bound with")
	}
	return m.sealer.Open(sealed)
}
