package upstreamset

import (
	"strings"

	"github.com/luanette/luanette/internal/mcp/upstream"
)

// AddLocal adds a server on this node only, for startup.lua.
func (u *Set) AddLocal(spec upstream.Spec) error {
	if err := checkAdded(spec); err != nil {
		return err
	}
	u.mu.Lock()
	fixed, taken := u.configured[spec.Name]
	place := u.places[spec.Name]
	u.mu.Unlock()
	if taken && (fixed.URL != spec.URL || fixed.Command != spec.Command) {
		return configuredFault(spec.Name, place).WithHint("choose another name")
	}
	return u.apply(func() {
		if !taken {
			u.startup[spec.Name] = spec
		}
		delete(u.dropped, spec.Name)
	})
}

// RemoveLocal removes a server on this node only.
func (u *Set) RemoveLocal(name string) (removed bool, err error) {
	err = u.apply(func() {
		_, removed = u.desired()[name]
		delete(u.startup, name)
		if _, still := u.desired()[name]; still {
			u.dropped[name] = true
		}
	})
	return removed, err
}

// privatePrefix begins the namespaces of private upstreams.
const privatePrefix = "own-"

// IsPrivate tells whether a namespace belongs to the chats of one user. No other
// principal sees it.
func IsPrivate(namespace string) bool { return strings.HasPrefix(namespace, privatePrefix) }

// PrivateName is the namespace of a private upstream.
func PrivateName(id string) string { return privatePrefix + id }

// AddPrivate connects a server of one user's chats.
func (u *Set) AddPrivate(spec upstream.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	return u.apply(func() { u.private[spec.Name] = spec })
}

func (u *Set) removePrivate(name string) (removed bool, err error) {
	err = u.apply(func() {
		_, removed = u.private[name]
		delete(u.private, name)
	})
	return removed, err
}
