package upstreamset

import (
	"maps"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Private upstreams are the servers of people, for their chats. Whoever stores them connects
// them on each node where they are used. They are in no list, and nobody else can name them.

// privatePrefix begins the namespaces of private upstreams.
const privatePrefix = "own-"

// IsPrivate tells whether a namespace belongs to the chats of one user. No other
// principal sees it.
func IsPrivate(namespace string) bool { return strings.HasPrefix(namespace, privatePrefix) }

// PrivateName is the namespace of a private upstream.
func PrivateName(id string) string { return privatePrefix + id }

const (
	maxPrivate  = 500       // connected at a time
	privateIdle = time.Hour // after which one that nobody uses is disconnected
)

// privateUpstream is a private upstream and when it was last used.
type privateUpstream struct {
	spec upstream.Spec
	used time.Time
}

// privateUpstreams are those that are connected, by namespace. They are never changed, but replaced.
type privateUpstreams map[string]privateUpstream

// using returns those that are connected once one is used: without those that nobody has used
// for a while. same says that nothing is to be connected or disconnected for it.
func (all privateUpstreams) using(spec upstream.Spec, now time.Time) (next privateUpstreams, same bool, err error) {
	next = maps.Clone(all)
	maps.DeleteFunc(next, func(name string, p privateUpstream) bool { return name != spec.Name && now.Sub(p.used) > privateIdle })
	before, there := next[spec.Name]
	if !there && len(next) >= maxPrivate {
		return nil, false, fault.New(fault.Limit, "%d private servers are connected already", len(next)).WithHint("try again later")
	}
	next[spec.Name] = privateUpstream{spec, now}
	return next, there && len(next) == len(all) && before.spec.Equal(spec), nil
}

// UsePrivate connects a private upstream, or changes its settings, and disconnects those that
// were not used for an hour.
func (u *Set) UsePrivate(spec upstream.Spec, now time.Time) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	u.changing.Lock()
	defer u.changing.Unlock()
	u.mu.Lock()
	next, same, err := u.private.using(spec, now)
	if same {
		u.private = next
	}
	u.mu.Unlock()
	if err != nil || same {
		return err
	}
	return u.applyLocked(func() { u.private = next })
}
