package catalog

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// Limits of exposed names. Model APIs take 64 characters of [A-Za-z0-9_-], and clients
// add a prefix of their own: "mcp__luanette__" has 15.
const (
	DefaultNameLength = 48
	longestName       = 64
	shortestLimit     = 24
	longestSpace      = 16 // of a name that has to be shortened
	hashLength        = 8
)

// names assigns every tool its exposed name. A tool keeps its name as long as the
// catalog lives, and no other tool gets that name meanwhile. Names are never parsed.
type names struct {
	limit  int
	byRef  map[tool.Ref]string
	byName map[string]tool.Ref
}

func newNames(limit int) *names {
	if limit <= 0 {
		limit = DefaultNameLength
	}
	return &names{
		limit:  max(min(limit, longestName), shortestLimit),
		byRef:  map[tool.Ref]string{},
		byName: map[string]tool.Ref{},
	}
}

// assign names the tools and returns all spellings, exposed names and "space.name". Our
// own tools keep their names; then tools whose names need no change are named, then the
// others.
func (n *names) assign(tools []tool.Info) map[string]tool.Ref {
	n.forget(tools)
	var altered []tool.Ref
	for i := range tools {
		ref := tools[i].Ref
		if ref.Space == "" && allowed(ref.Name) == ref.Name {
			n.reserve(ref)
		} else if _, named := n.byRef[ref]; !named {
			if plain, kept := n.plain(ref); !kept || !n.take(ref, plain) {
				altered = append(altered, ref)
			}
		}
	}
	for _, ref := range altered {
		n.settle(ref)
	}
	return n.spellings(tools)
}

// reserve gives one of our own tools its name, and its previous holder another.
func (n *names) reserve(ref tool.Ref) {
	holder, taken := n.byName[ref.Name]
	n.byName[ref.Name], n.byRef[ref] = ref, ref.Name
	if taken && holder != ref {
		delete(n.byRef, holder)
		n.settle(holder)
	}
}

func (n *names) take(ref tool.Ref, name string) bool {
	if _, taken := n.byName[name]; taken {
		return false
	}
	n.byName[name], n.byRef[ref] = ref, name
	return true
}

// settle finds a free name: the plain one with disallowed characters replaced, else a
// shortened one with a hash.
func (n *names) settle(ref tool.Ref) {
	plain, _ := n.plain(ref)
	if len(plain) <= n.limit && n.take(ref, plain) {
		return
	}
	for salt := 0; !n.take(ref, n.hashed(ref, salt)); salt++ {
	}
}

// plain is the namespace and the name; kept is false when characters had to be replaced
// or there are too many.
func (n *names) plain(ref tool.Ref) (name string, kept bool) {
	name = exposedAs(ref.Space, ref.Name)
	return name, name == ref.Space+"__"+ref.Name && len(name) <= n.limit
}

// exposedAs is the name of a tool with its namespace, in the characters of exposed names.
// Scripts, those of organisations too, have no namespace.
func exposedAs(space, name string) string {
	if space == "" {
		return allowed(name)
	}
	return allowed(space + "__" + name)
}

// hashed is the beginning of the namespace, the end of the tool's name, which says
// most, and a hash of both.
func (n *names) hashed(ref tool.Ref, salt int) string {
	sum := sha256.Sum256([]byte(ref.Space + "\x00" + ref.Name + strings.Repeat("\x00", salt)))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:hashLength]
	space, name := allowed(ref.Space), allowed(ref.Name)
	space = space[:min(len(space), longestSpace, n.limit/3)]
	rest := n.limit - len(space) - len("__") - len("_") - hashLength
	name = name[max(0, len(name)-rest):]
	return space + "__" + name + "_" + hash
}

// allowed replaces every character that exposed names may not have.
func allowed(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, name)
}

// forget frees the names of removed tools once they outnumber the present ones, so that
// a server that keeps inventing tools costs a bounded amount.
func (n *names) forget(present []tool.Info) {
	if len(n.byRef) <= 2*len(present)+4096 {
		return
	}
	keep := make(map[tool.Ref]bool, len(present))
	for i := range present {
		keep[present[i].Ref] = true
	}
	for ref, name := range n.byRef {
		if !keep[ref] {
			delete(n.byRef, ref)
			delete(n.byName, name)
		}
	}
}

// spellings maps every spelling of the tools' names to the tools. Where two collide the
// exposed name wins.
func (n *names) spellings(tools []tool.Info) map[string]tool.Ref {
	spellings := make(map[string]tool.Ref, 2*len(tools))
	for i := range tools {
		if original := tools[i].Original; original != "" {
			spellings[tool.Ref{Space: tools[i].Space, Name: original}.String()] = tools[i].Ref
		}
	}
	for i := range tools {
		ref := tools[i].Ref
		spellings[ref.String()] = ref
	}
	for i := range tools {
		ref := tools[i].Ref
		spellings[n.byRef[ref]] = ref
	}
	return spellings
}

// ExposedName is the name under which clients see something of a namespace that is no tool. With
// hashed it ends with a hash, for where the plain name is taken; one that is too long does, too.
func ExposedName(space, name string, hashed bool) string {
	n, ref := newNames(DefaultNameLength), tool.Ref{Space: space, Name: name}
	if plain, _ := n.plain(ref); !hashed && len(plain) <= n.limit {
		return plain
	}
	return n.hashed(ref, 0)
}
