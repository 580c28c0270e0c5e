package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSchemasAreLimited checks that huge schemas give no more text than the limits allow.
func TestSchemasAreLimited(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, `"p%d": {"enum": ["v%d"]},`, i, i)
	}
	s := ReadSchema(json.RawMessage(`{"properties": {` + strings.TrimSuffix(many.String(), ",") + `}}`))
	if len(s.Names) != mostParams || len(s.Values) != mostValues {
		t.Errorf("%d names, %d values", len(s.Names), len(s.Values))
	}
	deep := strings.Repeat(`{"properties": {"a": `, 50) + "{}" + strings.Repeat("}}", 50)
	if s := ReadSchema(json.RawMessage(deep)); len(s.Names) != deepestSchema+1 {
		t.Errorf("%d names", len(s.Names))
	}
}
