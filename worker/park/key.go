package park

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

const (
	keyBytes   = 32 // AES-256
	keyIDBytes = 8
	// keyIDDomain keeps a key's name apart from anything else made with it.
	keyIDDomain = "lakeweir/park/key-id/v1\x00"

	sealedKey = "sealed:" // by the source's token key
	plainKey  = "plain:"  // the source has none
)

// Key opens the runs of one quarantine. It is made for one, kept in the registry, and
// destroyed with it. The zero Key is none.
type Key struct{ bytes [keyBytes]byte }

// NewKey draws a key.
func NewKey() *Key {
	k := &Key{}
	_, _ = rand.Read(k.bytes[:]) // it never fails
	return k
}

// ID names the key without telling it, in 16 hexadecimal digits.
func (k *Key) ID() string {
	id := k.id()
	return hex.EncodeToString(id[:])
}

func (k *Key) id() (id [keyIDBytes]byte) {
	sum := sha256.Sum256(append([]byte(keyIDDomain), k.bytes[:]...))
	copy(id[:], sum[:])
	return id
}

func (*Key) String() string { return "***" }

// GoString hides the key from %#v.
func (*Key) GoString() string { return "***" }

// MarshalText hides the key from JSON.
func (*Key) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Sealer hides a quarantine's key in the registry. privacy.Sealer is one, made with the
// source's token key.
type Sealer interface {
	Seal(plain []byte) string
	// Open fails when the text was sealed with another key or is damaged.
	Open(sealed string) ([]byte, error)
}

// Seal returns the key as the registry keeps it. Without a sealer (nil) the text holds
// the key as it is, and whoever reads both the registry and the files reads the runs.
func (k *Key) Seal(s Sealer) catalog.Secret {
	if s == nil {
		return catalog.Secret(plainKey + base64.RawURLEncoding.EncodeToString(k.bytes[:]))
	}
	return catalog.Secret(sealedKey + s.Seal(k.bytes[:]))
}

// OpenKey reads what Seal returned, and makes sure that it is the key of that name. It
// fails with park.key when the key was destroyed or the sealer is another than then. A
// source may have got a token key since: what was not sealed is read as it is.
func OpenKey(kept catalog.Secret, id string, s Sealer) (*Key, error) {
	text := kept.Reveal()
	if text == "" {
		return nil, keyError("", "what was parked cannot be opened: the quarantine has ended, and its key is destroyed")
	}
	const hint = "give the source the token_key that it had when the quarantine began"
	var plain []byte
	var err error
	switch sealed, ok := strings.CutPrefix(text, sealedKey); {
	case ok && s == nil:
		return nil, keyError(hint, "the key of what is parked is sealed with a token key, and the source has none")
	case ok:
		if plain, err = s.Open(sealed); err != nil {
			return nil, keyError(hint, "the key of what is parked was sealed with another token key than the source's, or is damaged")
		}
	default:
		plain, err = base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, plainKey))
	}
	k := &Key{}
	if err == nil && len(plain) == keyBytes {
		copy(k.bytes[:], plain)
		if k.ID() == id {
			return k, nil
		}
	}
	return nil, keyError("restore the registry's row of the quarantine, or abandon the quarantine and read the table anew", "the key that the registry keeps is not the one that was parked with")
}

func keyError(hint, message string) error {
	return catalog.Errorf(catalog.Invalid, catalog.CodeParkKey, hint, "%s", message)
}
