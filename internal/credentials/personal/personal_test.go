package personal_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

const value = "ghp_of_ann_and_nobody_else"

func open(t *testing.T, store *db.DB) *personal.Store {
	t.Helper()
	values, err := personal.Open(t.Context(), store, personal.Options{
		Key: func() (secret.Text, error) { return secret.New("a key for this test only"), nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestValuesBelongToOneOwner checks that a value is found by its owner only, is not
// readable in the database, and cannot be moved to another owner there.
func TestValuesBelongToOneOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, testOneOwner)
}

func testOneOwner(t *testing.T, store *db.DB) {
	values, ctx := open(t, store), t.Context()
	if err := values.Set(ctx, "acme", "person:ann/acme", "TOKEN", value); err != nil {
		t.Fatal(err)
	}
	if got, err := values.Get(ctx, "person:ann/acme", "TOKEN"); err != nil || got.Reveal() != value {
		t.Errorf("ann: %v", err)
	}
	for _, owner := range []string{"person:bob/acme", "person:ann", "person:ann/other", ""} {
		if _, err := values.Get(ctx, owner, "TOKEN"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%q: %v", owner, err)
		}
	}
	err := store.Write(ctx, func(tx *db.Tx) error {
		var sealed []byte
		if err := tx.QueryRow(ctx, `SELECT sealed FROM personal_values`).Scan(&sealed); err != nil {
			return err
		}
		if bytes.Contains(sealed, []byte(value)) {
			t.Error("the value is readable in the database")
		}
		_, err := tx.Exec(ctx, `UPDATE personal_values SET owner = 'person:bob/acme'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := values.Get(ctx, "person:bob/acme", "TOKEN"); err == nil {
		t.Error("a value that was moved to another owner is readable")
	}
}

func TestValuesOverHTTP(t *testing.T) {
	t.Parallel()
	values := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	var audited []string
	api := personal.API{Values: values, Audit: func(_ context.Context, action, subject string, detail []byte) {
		audited = append(audited, action+" "+subject+string(detail))
	}}
	mux := principal.Unguarded(api.Routes())
	ann := principal.Principal{ID: "person:ann", Name: "ann"}
	tests := []struct {
		who          principal.Principal
		method, path string
		body         string
		status       int
		says         string
	}{
		{ann, "PUT", "/TOKEN", `{"value":"` + value + `"}`, 200, `"TOKEN"`},
		{ann, "GET", "", "", 200, `"TOKEN"`},
		{principal.Principal{ID: "person:ann"}.ByKey("laptop"), "GET", "", "", 200, `"TOKEN"`},
		{principal.Principal{ID: "person:bob"}, "GET", "", "", 200, `[]`},
		{principal.Principal{ID: "person:bob"}, "DELETE", "/TOKEN", "", 404, ""},
		{principal.Principal{ID: "key:laptop", User: "ann"}, "DELETE", "/TOKEN", "", 404, ""},
		{principal.Principal{ID: "person:ann", Grant: "g1"}, "PUT", "/TOKEN", `{"value":"x"}`, 403, "clients"},
		{principal.Anonymous(), "GET", "", "", 403, ""},
		{ann, "PUT", "/no-name", `{"value":"x"}`, 400, ""},
		{ann, "PUT", "/LINES", `{"value":"a\nb"}`, 400, ""},
		{ann, "PUT", "/EMPTY", `{"value":""}`, 400, ""},
		{ann, "PUT", "/MORE", `{"value":"x","owner":"person:bob"}`, 400, "owner"},
		{ann, "DELETE", "/TOKEN", "", 200, ""},
		{ann, "GET", "", "", 200, `[]`},
	}
	for _, tt := range tests {
		r := httptest.NewRequestWithContext(principal.With(t.Context(), tt.who), tt.method, "/api/v1/me/secrets"+tt.path, strings.NewReader(tt.body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if text := w.Body.String(); w.Code != tt.status || !strings.Contains(text, tt.says) || strings.Contains(text, value) {
			t.Errorf("%s %s%s of %s: %d %s", tt.method, "secrets", tt.path, tt.who.ID, w.Code, text)
		}
	}
	if got := strings.Join(audited, ", "); got != "secret.set TOKEN, secret.delete TOKEN" {
		t.Errorf("audited: %s", got)
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	owners := personal.Owners{Check: func(id string) error {
		if id == "key:old" {
			return fault.New(fault.Denied, "the key is revoked")
		}
		return nil
	}}
	if p, err := owners.Person(t.Context(), "key:web for acme/ada"); err != nil || p.Name != "ada" || p.Org != "acme" {
		t.Errorf("a person in a chat: %+v, %v", p, err)
	}
	if _, err := owners.Person(t.Context(), "key:old for acme/ada"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("of a revoked key: %v", err)
	}
	if !owners.Gone("key:old") || owners.Gone("key:web") || owners.Gone(principal.LocalID) {
		t.Error("the wrong owners are gone")
	}
}
