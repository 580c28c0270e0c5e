package server

import (
	"context"
	"testing"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// A database that is only referred to is the same for the server and for commands that
// open it beside one, and several machines may share it all the same.
func TestDatabaseByReference(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		database string
		shared   bool
	}{
		"sqlite":   {"sqlite:" + t.TempDir() + "/elsewhere.db", false},
		"postgres": {dbtest.Postgres(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := config.Environment{"HOME": t.TempDir(), "WHERE": tt.database}
			file := write(t, `database = "${env:WHERE}"`)
			_, house := start(t, config.Sources{File: file, Env: env, Flags: map[string]string{"node": "west"}})
			if house.isShared() != tt.shared {
				t.Errorf("shared: %v", !tt.shared)
			}
			if _, err := house.config.OAuthKey(house.secrets); (err == nil) == tt.shared {
				t.Errorf("a key of its own: %v", err)
			}
			beside, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"data": t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			if list, err := Nodes(t.Context(), beside, env); err != nil || len(list) != 1 || list[0].Name != "west" {
				t.Errorf("nodes: %+v, %v", list, err)
			}
			keys, err := OpenKeys(t.Context(), beside, env)
			if err != nil {
				t.Fatal(err)
			}
			made, err := keys.Create(t.Context(), httpauth.NewKey{Name: "web"})
			if err := keys.Close(); err != nil {
				t.Error(err)
			}
			if err != nil || made.Token == "" {
				t.Fatal(made, err)
			}
			shut := func() bool {
				shut, err := house.gate.KeyRequired(context.WithoutCancel(t.Context()))
				return err == nil && shut
			}
			clocktest.Await(t, shut)
		})
	}
}

// What is referred to and is not there is named, in every command.
func TestDatabaseByWrongReference(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{File: write(t, `database = "${env:NOWHERE}"`), Flags: map[string]string{"data": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(t.Context(), loaded, config.Environment{}); fault.CodeOf(err) != fault.Config {
		t.Errorf("keys: %v", err)
	}
	if _, err := Nodes(t.Context(), loaded, config.Environment{}); fault.CodeOf(err) != fault.Config {
		t.Errorf("nodes: %v", err)
	}
}
