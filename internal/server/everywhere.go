package server

import (
	"context"
	"strings"
)

// operateTopic notifies nodes of what an operator wants done on all of them.
const operateTopic = "operate"

// What is done on all nodes: the word of a notification, before its subject.
const (
	reloadEverywhere  = "reload"
	restartEverywhere = "restart"
)

// tellNodes asks the other nodes to do the same. A node that is disconnected at this moment
// does not hear it.
func (p *process) tellNodes(ctx context.Context, word, subject string) {
	if tell := p.notifier(operateTopic); tell != nil {
		tell(ctx, strings.Join([]string{p.nodeID(), word, subject}, " "))
	}
}

// followOperator does what an operator wants done on all nodes.
func (srv *Server) followOperator(ctx context.Context) {
	srv.listenTopic(operateTopic, func(payload string) {
		from, rest, _ := strings.Cut(payload, " ")
		if from == srv.nodeID() {
			return // it has done so
		}
		switch word, subject, _ := strings.Cut(rest, " "); word {
		case reloadEverywhere:
			_, _ = srv.Reload(ctx) // it is logged
		case restartEverywhere:
			if err := srv.upstreams.Manager.Restart(subject); err != nil {
				srv.log.WarnContext(ctx, "upstream not restarted, as another node asked", "upstream", subject, "error", err)
			}
		}
	})
}

// ReloadAll is Reload on all nodes. The answer is that of this one.
func (srv *Server) ReloadAll(ctx context.Context) (waiting []string, err error) {
	if waiting, err = srv.Reload(ctx); err == nil {
		srv.tellNodes(ctx, reloadEverywhere, "")
	}
	return waiting, err
}

// restartElsewhere restarts an upstream on the other nodes.
func (srv *Server) restartElsewhere(ctx context.Context, name string) {
	srv.tellNodes(ctx, restartEverywhere, name)
}
