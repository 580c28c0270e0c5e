package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the length of a tool's name with the namespace in front of it that clients
// see; many of them take no longer ones.
const maxName = 64

// NameBudget is what the tools of an upstream may use of maxName.
func NameBudget(upstream string) int { return max(maxName-len(upstream)-len("__"), 20) }

// HashedName is a name within a budget that ends with a hash of what it names, for names
// that are too long or that several operations would have. So it depends on no other
// operation.
func HashedName(name, named string, budget int) string {
	sum := sha256.Sum256([]byte(named))
	head := name[:min(len(name), budget-9)]
	return strings.TrimRight(head, "_") + "_" + hex.EncodeToString(sum[:4])
}
