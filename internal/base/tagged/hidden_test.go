package tagged

import "testing"

// TestHideShowsReferences hides passwords in addresses, and shows references to them.
func TestHideShowsReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u:${file:/etc/luanette/password}@h/db":         "postgres://u:${file:/etc/luanette/password}@h/db",
		"postgres://u:${file:/etc/password}@h/db?sslmode=require":  "postgres://u:${file:/etc/password}@h/db?sslmode=require",
		"postgres://u:${file:/etc/password}@h/db?password=hunter2": HiddenValue,
		"postgres://u:hunter2${file:/etc/password}@h/db":           HiddenValue,
		"postgres://u:${file:/etc/password}hunter2@h/db":           HiddenValue,
		"postgres://u:hunter2@h/db":                                "postgres://u:" + HiddenValue + "@h/db",
		"postgres://u:hun/ter2@h/db":                               HiddenValue,
	} {
		if got := Hide("url", text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}
