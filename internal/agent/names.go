package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/luanette/luanette/internal/tool"
)

// longestName is what every provider allows for a tool's name.
const longestName = 64

// modelName is what the model calls a tool: its namespace and name in letters that
// providers allow. A name that would be too long, or is taken by another tool,
// ends in a piece of a hash of the whole.
func modelName(ref tool.Ref, taken map[string]tool.Ref) string {
	name := plain(ref.Name)
	if ref.Space != "" {
		name = plain(ref.Space) + "__" + name
	}
	if other, is := taken[name]; len(name) <= longestName && name != "" && (!is || other == ref) {
		return name
	}
	sum := sha256.Sum256([]byte(ref.Space + "\x00" + ref.Name))
	tail := "_" + hex.EncodeToString(sum[:5])
	return name[:min(len(name), longestName-len(tail))] + tail
}

func plain(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		default:
			return '_'
		}
	}, name)
}
