package upstream_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// TestNamesOfFunctionsAreRefused checks that no upstream is hidden by a function of mcp
// in scripts.
func TestNamesOfFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range tool.ScriptFunctions {
		err := upstream.Spec{Name: name, Settings: upstream.Settings{URL: "http://127.0.0.1:1/mcp"}}.Validate()
		if fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(err.Error(), "mcp."+name+" is a function") {
			t.Errorf("%s: %v", name, err)
		}
		if err := (upstream.Spec{Name: name + "2", Settings: upstream.Settings{URL: "http://127.0.0.1:1/mcp"}}).Validate(); err != nil {
			t.Errorf("%s2: %v", name, err)
		}
	}
}
