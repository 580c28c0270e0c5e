package server

import (
	"cmp"
	"context"
	"time"
)

// Intervals at which changes of other processes are looked for. Nodes on Postgres are
// notified of them, processes that share a SQLite file are not.
const (
	pollShared = 30 * time.Second
	pollAlone  = 2 * time.Second
)

// poll calls look whenever another process may have changed what a topic is about, until
// ctx ends.
func (srv *Server) poll(ctx context.Context, topic string, look func(context.Context) error) {
	every := pollAlone
	if srv.isShared() {
		every = cmp.Or(srv.options.pollInterval, pollShared)
	}
	srv.store.Poll(ctx, topic, every, srv.log, look)
}
