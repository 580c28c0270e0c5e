package node

import (
	"context"
	"time"
)

// drainTimeout limits how long announcing the shutdown may take.
const drainTimeout = 2 * time.Second

// SetAddress sets the address that other nodes see. Nil is no node, here and below:
// nothing is announced.
func (n *Node) SetAddress(address string) {
	if n != nil {
		n.address.Store(address)
	}
}

// AnnounceDrain announces that the node is about to leave, also when ctx has ended.
func (n *Node) AnnounceDrain(ctx context.Context) {
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	n.draining.Store(true)
	if _, err := n.heartbeat(ctx); err != nil {
		n.options.Log.WarnContext(ctx, "shutdown not announced to other nodes", "error", err)
	}
}

// Announce stores the node's current state now and notifies the other nodes.
func (n *Node) Announce(ctx context.Context) {
	if n == nil {
		return
	}
	_, err := n.heartbeat(ctx)
	if err == nil {
		err = n.db.Notify(ctx, topic, "look")
	}
	if err != nil && ctx.Err() == nil {
		n.options.Log.WarnContext(ctx, "state not announced to other nodes", "error", err)
	}
}
