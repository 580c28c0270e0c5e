package hootenanny

import (
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// WhyOff says why a tool of this package's namespace is not found in a server that runs
// without it; nil for all other names.
func WhyOff(name string) error {
	if !strings.HasPrefix(name, Space+".") && !strings.HasPrefix(name, Space+"__") {
		return nil
	}
	return fault.New(fault.ToolNotFound, "no tool %q: the music tools are switched off", name).
		WithHint("start the server with `luanette serve --music`, or set music.enabled = true; docs/music.md")
}
