package policy

import (
	"context"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
)

// WithKeys refuses effects of scripts also when the caller's key is no longer valid.
type WithKeys struct {
	*Policy
	Keys interface {
		Check(who principal.Principal) error
	}
}

// Check is asked before an effect happens.
func (w WithKeys) Check(ctx context.Context, e host.Effect) error {
	if !strings.HasPrefix(e.Name, "mcp.") { // the catalog checks the key of tool calls
		if err := w.Keys.Check(principal.Of(ctx)); err != nil {
			return err
		}
	}
	return w.Policy.Check(ctx, e)
}
