// Package typedecltest checks declarations with the TypeScript compiler.
package typedecltest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/npmtest"
)

//go:embed check.cjs
var checker string

// Check type-checks each file by itself and returns the compiler's errors by file. It
// skips the test if no compiler is installed.
func Check(t testing.TB, files map[string]string) map[string][]string {
	t.Helper()
	compiler := filepath.Join(npmtest.Modules(t), "typescript", "lib", "typescript.js")
	if _, err := os.Stat(compiler); err != nil {
		t.Fatalf("make servers installs the TypeScript compiler: %v", err)
	}
	input, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "-e", checker, compiler)
	cmd.Stdin = bytes.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("typescript: %v\n%s", err, stderr.String())
	}
	var problems map[string][]string
	if err := json.Unmarshal(out, &problems); err != nil {
		t.Fatal(err)
	}
	return problems
}
