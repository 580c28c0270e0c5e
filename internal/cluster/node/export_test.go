package node

import (
	"context"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// FrozenAfter is the time without a heartbeat after which a node that holds its claim
// counts as dead.
func FrozenAfter(silence time.Duration) { frozenAfter = silence }

// Abandon ends the node as the death of its process would: its row stays.
func (n *Node) Abandon() error {
	if n.stop != nil {
		n.stop()
		n.work.Wait()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.release()
}

// RemoveDead removes dead nodes, as a node does that has been connected for long.
func (n *Node) RemoveDead(ctx context.Context) error {
	n.mu.Lock()
	n.since = time.Now().Add(-time.Hour)
	n.mu.Unlock()
	return n.removeDead(ctx)
}

// Held returns nil if the node holds its claim.
func (n *Node) Held(ctx context.Context) error {
	n.mu.Lock()
	slot, cutOff := n.slot, n.disconnected
	n.mu.Unlock()
	release, err := n.db.Claim(ctx, claimName(slot))
	if fault.CodeOf(err) == fault.Conflict && !cutOff {
		return nil
	}
	if err == nil {
		return errors.Join(errors.New("the claim is free"), release())
	}
	return errors.Join(errors.New("not held"), err)
}
