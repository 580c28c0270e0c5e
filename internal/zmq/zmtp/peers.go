package zmtp

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// peers are the connected links of a socket.
type peers struct {
	mu    sync.RWMutex
	links []*link          // replaced, never modified
	named map[string]*link // of a ROUTER: by identity
	some  chan struct{}    // closed while there is a link
	turn  int
}

func newPeers() *peers {
	return &peers{named: make(map[string]*link), some: make(chan struct{})}
}

// add adds l.
func (p *peers) add(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.append(l)
}

func (p *peers) append(l *link) {
	p.links = append(slices.Clip(p.links), l)
	if len(p.links) == 1 {
		close(p.some)
	}
}

// addNamed adds l under its identity, and generates one if it has none. An
// identity in use is an error or, with handover, taken from the other peer.
func (p *peers) addNamed(l *link, handover bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.peer.Identity == "" {
		l.peer.Identity = "\x00" + rand.Text()
	}
	if owner := p.named[l.peer.Identity]; owner != nil {
		if !handover {
			return fault.New(fault.Conflict, "the identity %q is in use", l.peer.Identity).
				WithHint("give each client a unique identity, or none")
		}
		owner.conn.Close()
	}
	p.named[l.peer.Identity] = l
	p.append(l)
	return nil
}

// remove removes l.
func (p *peers) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.links)
	p.links = slices.DeleteFunc(slices.Clone(p.links), func(other *link) bool { return other == l })
	if before > 0 && len(p.links) == 0 {
		p.some = make(chan struct{})
	}
	if p.named[l.peer.Identity] == l {
		delete(p.named, l.peer.Identity)
	}
}

// all returns the current links; callers must not modify the slice.
func (p *peers) all() []*link {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.links
}

// find is the link with that identity, or nil.
func (p *peers) find(identity []byte) *link {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.named[string(identity)]
}

// next is the next link in round-robin order, or nil if there is none.
func (p *peers) next() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) == 0 {
		return nil
	}
	p.turn = (p.turn + 1) % len(p.links)
	return p.links[p.turn]
}

// wait waits until there is a link, or ctx or done ends.
func (p *peers) wait(ctx context.Context, done <-chan struct{}) error {
	p.mu.RLock()
	some := p.some
	p.mu.RUnlock()
	select {
	case <-some:
		return nil
	case <-done:
		return ErrClosed
	case <-ctx.Done():
		return contextError(ctx)
	}
}
