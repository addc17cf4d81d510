package park

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
)

// A sealed run is a header and what AES-256-GCM makes of the zstd of its data:
//
//	magic    6 bytes  "lwpark"
//	version  1 byte   1
//	reserved 1 byte   0
//	key id   8 bytes
//	plain    8 bytes  length of the data, big-endian
//	sealed   8 bytes  length of what follows
//	nonce    12 bytes, random
//	text     and its tag, 16 bytes
//
// The header and the run's name (Scope and number) are authenticated with the text.
const (
	magic       = "lwpark"
	version     = 1
	headerBytes = len(magic) + 2 + keyIDBytes + 8 + 8
	sealDomain  = "lakeweir/park/run/v1"
)

// MaxData is the most bytes that are parked as one run: 1 GiB, which is the most that
// Postgres sends as one message, and 16 MiB for what a source writes around it. Sources
// end runs far below, and only a single change may come near it.
const MaxData = 1<<30 + 16<<20

// maxSealed bounds the file of a run: what does not get smaller takes a little more.
const maxSealed = MaxData + MaxData/64 + 4096

// Scope names a quarantine. A run opens only under the scope that it was sealed under.
type Scope struct {
	Source     string
	Table      string // catalog.TableName.String()
	Quarantine int64
}

func (s Scope) String() string {
	return fmt.Sprintf("%s/%s, quarantine %d", s.Source, s.Table, s.Quarantine)
}

// seal returns the file of a run. It fails with park.too_large.
func seal(k *Key, s Scope, seq uint64, data []byte) ([]byte, error) {
	if len(data) > MaxData {
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeParkSize,
			"read the table anew once the large value is gone, or leave the table out",
			"%s: run %d has %d bytes, and at most %d are parked as one", s, seq, len(data), MaxData)
	}
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	packed := compress(data)
	length := len(packed) + aead.Overhead()
	out := make([]byte, 0, headerBytes+length)
	out = append(append(out, magic...), version, 0)
	id := k.id()
	out = append(out, id[:]...)
	out = binary.BigEndian.AppendUint64(out, uint64(len(data)))
	out = binary.BigEndian.AppendUint64(out, uint64(length))
	return aead.Seal(out, nil, packed, associated(out, s, seq)), nil //nolint:gosec // no nonce is given: the cipher draws one
}

// open returns the data of a run. It fails with park.key when the file was sealed under
// another key, park.version when a newer Lakeweir made it, and park.damaged when it was
// cut or changed or is another run.
func open(k *Key, s Scope, seq uint64, file []byte) ([]byte, error) {
	damaged := func(what string) error {
		return catalog.Errorf(catalog.Invalid, catalog.CodeParkDamaged,
			"restore the file as it was; when it cannot be, abandon the quarantine and read the table anew",
			"%s: the file of run %d %s", s, seq, what)
	}
	if len(file) < headerBytes {
		return nil, damaged("was cut short")
	}
	header, body := file[:headerBytes], file[headerBytes:]
	if !bytes.HasPrefix(header, []byte(magic)) {
		return nil, damaged("is no file of parked changes")
	}
	rest := header[len(magic):]
	if rest[0] != version || rest[1] != 0 {
		return nil, catalog.Errorf(catalog.Denied, catalog.CodeParkVersion, "use the Lakeweir version that parked it, or a newer one",
			"%s: the file of run %d has version %d.%d, and this Lakeweir reads %d.0", s, seq, rest[0], rest[1], version)
	}
	id := k.id()
	if !bytes.Equal(rest[2:2+keyIDBytes], id[:]) {
		return nil, keyError("restore the file as it was; when it cannot be, abandon the quarantine and read the table anew",
			fmt.Sprintf("%s: the file of run %d was sealed under another key", s, seq))
	}
	plain, length := binary.BigEndian.Uint64(rest[2+keyIDBytes:]), binary.BigEndian.Uint64(rest[2+keyIDBytes+8:])
	switch {
	case uint64(len(body)) < length:
		return nil, damaged("was cut short")
	case uint64(len(body)) > length, plain > MaxData:
		return nil, damaged("was changed")
	}
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	packed, err := aead.Open(nil, nil, body, associated(header, s, seq))
	if err != nil {
		return nil, damaged("was changed, or is another run's")
	}
	data, err := decompress(packed, int(plain))
	if err != nil {
		return nil, damaged("cannot be unpacked")
	}
	return data, nil
}

func (k *Key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.bytes[:])
	if err != nil {
		return nil, fmt.Errorf("make the cipher of parked changes: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of parked changes: %w", err)
	}
	return aead, nil
}

// associated is what is authenticated with a run beside its text. Each name comes after
// its length, so that no two scopes are written alike.
func associated(header []byte, s Scope, seq uint64) []byte {
	out := append([]byte(nil), header...)
	for _, name := range []string{sealDomain, s.Source, s.Table} {
		out = binary.BigEndian.AppendUint64(out, uint64(len(name)))
		out = append(out, name...)
	}
	out = binary.BigEndian.AppendUint64(out, uint64(s.Quarantine))
	return binary.BigEndian.AppendUint64(out, seq)
}
