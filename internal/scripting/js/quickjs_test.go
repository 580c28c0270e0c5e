package js

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"os"
	"testing"

	quickjs "github.com/aperturerobotics/go-quickjs-wasi-reactor"
)

// TestEngineIsThatOfTheModule compares the compressed engine with the module's; UPDATE=1
// writes it.
func TestEngineIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	if os.Getenv("UPDATE") != "" {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(quickjs.QuickJSWASM); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("quickjs.wasm.gz", out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	wasm, err := quickJS()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(wasm, quickjs.QuickJSWASM) || checksum() != crc32.ChecksumIEEE(wasm) {
		t.Error("it is another engine: UPDATE=1 go test ./internal/scripting/js -run TestEngineIsThatOfTheModule")
	}
}
