package turn_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestDatabaseOutage checks that a turn continues after a database outage at any
// point, and that the message is answered once.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := dbtest.OpenWith(t, server.URL, db.Options{OutageTimeout: time.Nanosecond})
	var back sync.WaitGroup
	moments := map[string]int{}
	stopDatabase := func(moment, wanted string) {
		if moment == wanted {
			moments[moment]++
			server.Stop(t, "immediate")
			back.Go(func() { server.Start(t) })
		}
	}
	query := func(ctx context.Context) error {
		return d.Read(ctx, func(tx *db.Tx) error { _, err := tx.Now(ctx); return err })
	}
	current := func(ctx context.Context, was principal.Principal) (principal.Principal, error) {
		stopDatabase("who", was.User)
		return was, query(ctx)
	}
	answer := script(func(ctx context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		stopDatabase("tool", r.User)
		err := query(ctx) // as a tool that needs the database would
		stopDatabase("end", r.User)
		return agent.Reply{Responses: []string{"re: " + r.Message}}, err
	})
	service, err := turn.Open(t.Context(), d, answer, turn.Options{CurrentPrincipal: current, Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	waits, _ := db.WaitForDatabase(t.Context()) // as a client that retries
	for _, moment := range []string{"who", "tool", "end"} {
		turn, err := service.Send(waits, conversation.Message{
			Person: profile.Person{Org: "acme", User: moment}, Text: "hello", Asker: &principal.Principal{ID: "key:" + moment, User: moment},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := answered(t, turn); got.Text() != "re: hello" || moments[moment] != 1 {
			t.Errorf("%s: %q, %d outages, want 1", moment, got.Text(), moments[moment])
		}
		back.Wait()
		if got, _, err := service.Conversations.History(waits, turn.Message.Person, 100, 0); err != nil || len(got) != 1 {
			t.Errorf("%s: history %v (%v)", moment, got, err)
		}
	}
}
