package park

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packer serves the process: it costs some megabytes, and tables park one after another.
var packer = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // options that are always valid
	}
	return e
})

var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxData))
	if err != nil {
		panic(err) // options that are always valid
	}
	return d
})

func compress(data []byte) []byte { return packer().EncodeAll(data, nil) }

// decompress returns exactly so many bytes.
func decompress(packed []byte, length int) ([]byte, error) {
	data, err := unpacker().DecodeAll(packed, make([]byte, 0, length))
	if err != nil {
		return nil, err
	}
	if len(data) != length {
		return nil, errors.New("another length than it had")
	}
	return data, nil
}
