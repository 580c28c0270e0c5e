package turn_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/turn"
)

// startingServers are servers that were not tried yet.
type startingServers struct {
	ownServers
	awaited atomic.Bool
}

func (s *startingServers) Await(_ context.Context, spaces []string, waits func(int)) {
	if !s.awaited.Load() {
		waits(len(spaces))
	}
	s.awaited.Store(true)
}

// TestFirstMessageWaitsForServers checks that the agent begins when the tools of all
// servers are known, that people are told, and that later messages do not wait.
func TestFirstMessageWaitsForServers(t *testing.T) {
	t.Parallel()
	upstreams := &startingServers{ownServers: ownServers{own: []servers.Server{{ID: "fs", Enabled: true}}}}
	service, _ := open(t, store(t), func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		if !upstreams.awaited.Load() {
			t.Error("the agent began before the servers were tried")
		}
		return echo(ctx, r, emit)
	}, turn.Options{Servers: servers.Options{Upstreams: upstreams}})
	for i, want := range []bool{true, false} {
		var seen []agent.Event
		if _, err := say(t, service, ann, "hi").Follow(t.Context(), func(e agent.Event) error { seen = append(seen, e); return nil }); err != nil {
			t.Fatal(err)
		}
		if told := slices.Contains(seen, agent.Event(agent.Status{Message: "Connecting to 1 server(s)..."})); told != want {
			t.Errorf("message %d: told %v", i, told)
		}
	}
}
