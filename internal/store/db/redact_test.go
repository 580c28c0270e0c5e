package db_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db"
)

// TestRedactURL hides passwords, and shows references to them, which say where they are.
func TestRedactURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:hunter2@h/db":                          "postgres://u:xxxxx@h/db",
		"postgres://u@h/db?password=hunter2":                 "postgres://u@h/db?password=xxxxx",
		"postgres://u:${file:/etc/luanette/password}@h/db":   "postgres://u:${file:/etc/luanette/password}@h/db",
		"postgres://u:${env:PASSWORD}@h:5432/db?sslmode=off": "postgres://u:${env:PASSWORD}@h:5432/db?sslmode=off",
		"postgres://u:hunter2${env:REST}@h/db":               "postgres://u:xxxxx@h/db",
		"${env:DATABASE}":                                    "${env:DATABASE}",
		"postgres://u:hun/ter2@h/db":                         "(unreadable address)",
		"sqlite:data/luanette.db":                            "sqlite:data/luanette.db",
	} {
		if got := db.RedactURL(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
