package server

import (
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
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
			file := configtest.WriteFile(t, `database = "${env:WHERE}"`)
			_, srv := start(t, config.Sources{File: file, Env: env, Flags: map[string]string{"node": "west"}})
			if srv.isShared() != tt.shared {
				t.Errorf("shared: %v", !tt.shared)
			}
			if _, err := srv.config.OAuthKey(srv.secrets); (err == nil) == tt.shared {
				t.Errorf("a key of its own: %v", err)
			}
		})
	}
}
