package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// longestName is the longest tool name that every provider allows.
const longestName = 64

// name returns the model's name for a tool: its namespace and name in characters that
// providers allow. A name that is too long, or used by another tool, ends in part of a
// hash. The tool of a name is looked up in a map, never parsed from it.
func (b *toolbox) name(ref tool.Ref) string {
	name := plain(ref.Name)
	if ref.Space != "" {
		name = plain(ref.Space) + "__" + name
	}
	if len(name) <= longestName && name != "" && b.free(name) {
		return name
	}
	sum := sha256.Sum256([]byte(ref.Space + "\x00" + ref.Name))
	hash := hex.EncodeToString(sum[:])
	for digits := 10; ; digits++ {
		tail := "_" + hash[:digits]
		if longer := name[:min(len(name), longestName-len(tail))] + tail; b.free(longer) {
			return longer
		}
	}
}

func (b *toolbox) free(name string) bool {
	_, taken := b.refs[name]
	_, own := b.local[name]
	return !taken && !own && !b.client[name]
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
