package turn_test

import (
	"context"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestRefusedByTheDatabase checks that a message whose begin or answer the database refuses
// fails, and that the person's next message is answered.
func TestRefusedByTheDatabase(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]string{"the begin": "running", "the answer": "done"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, dbtest.SQLite(t))
			service, err := turn.Open(t.Context(), d, script(func(_ context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
				return agent.Reply{Responses: []string{"re: " + r.Message}}, nil
			}), turn.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			do := func(statement string) {
				t.Helper()
				if err := d.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			ann := profile.Person{Org: "acme", User: "ann"}
			do("CREATE TRIGGER refuses BEFORE UPDATE ON talk_turns WHEN NEW.status = '" + status + "' BEGIN SELECT RAISE(ABORT, 'refused'); END")
			if reply, err := say(t, service, ann, "one").Wait(t.Context()); err == nil {
				t.Errorf("answered %v", reply)
			}
			do("DROP TRIGGER refuses")
			if got := answered(t, say(t, service, ann, "two")); got.Text() != "re: two" {
				t.Errorf("the next message: %q", got.Text())
			}
		})
	}
}
