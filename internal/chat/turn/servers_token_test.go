package turn_test

import (
	"context"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestAttackStoredTokens looks for tokens of people's servers in the database, and
// copies one to another owner and to another URL.
func TestAttackStoredTokens(t *testing.T) {
	t.Parallel()
	url := store(t)
	service, _ := open(t, url, echo, turn.Options{})
	acme, other := profile.Person{Org: "acme", User: "ann"}, profile.Person{Org: "other", User: "ann"}
	server := servers.Server{ID: "web", URL: "https://web.example", AuthToken: "hunter2", Enabled: true}
	if _, err := service.Servers.Put(t.Context(), acme, server); err != nil {
		t.Fatal(err)
	}
	d := dbtest.Open(t, url)
	body := document(t, d)
	if strings.Contains(body, "hunter2") || !strings.Contains(body, "sealedToken") {
		t.Errorf("stored %s", body)
	}
	if _, err := service.Servers.Put(t.Context(), other, servers.Server{ID: "web", URL: "https://web.example", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	for whose, text := range map[profile.Person]string{
		other: body, // acme's row
		acme:  strings.Replace(body, "web.example", "evil.example", 1),
	} {
		put(t, d, whose, text)
		if list, err := service.Servers.List(t.Context(), whose); err != nil || len(list) != 1 || list[0].AuthToken != "" {
			t.Errorf("%s has %+v, %v", whose.Org, list, err)
		}
	}
}

func document(t *testing.T, d *db.DB) (body string) {
	t.Helper()
	err := d.QueryRow(t.Context(), `SELECT body FROM talk_documents WHERE kind = 'servers'`).Scan(&body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func put(t *testing.T, d *db.DB, p profile.Person, body string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(context.WithoutCancel(t.Context()), `UPDATE talk_documents SET body = $1 WHERE kind = 'servers' AND org = $2`, body, p.Org)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
