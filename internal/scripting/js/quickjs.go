package js

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
)

// compressed is QuickJS as WebAssembly: qjs-wasi.wasm of the module go-quickjs-wasi-reactor,
// which would add a megabyte more to the program. A test holds it against the module.
//
//go:embed quickjs.wasm.gz
var compressed []byte

// quickJS is the engine's WebAssembly. It is needed only until it is compiled.
func quickJS() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read the JavaScript engine: %w", err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the JavaScript engine: %w", err)
	}
	return wasm, nil
}

// checksum is the CRC-32 of the engine's WebAssembly, which gzip has at its end.
func checksum() uint32 { return binary.LittleEndian.Uint32(compressed[len(compressed)-8:]) }
