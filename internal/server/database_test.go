package server

import (
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestDatabaseByReference checks that the server resolves a reference in the database URL
// before it decides whether nodes share the database.
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
				t.Errorf("isShared() = %v", !tt.shared)
			}
			if err := srv.config.OAuthKeyProblem(srv.secrets); (err == nil) == tt.shared {
				t.Errorf("OAuthKeyProblem without oauth.key: %v", err)
			}
			if _, err := srv.config.OAuthKey(srv.secrets); (err == nil) == tt.shared {
				t.Errorf("OAuthKey without oauth.key: %v", err)
			}
		})
	}
}
