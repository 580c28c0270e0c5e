package servers

import "testing"

func TestLoggedURLsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                    "",
		"https://wiki.example/mcp":            "https://wiki.example/mcp",
		"https://ann:pw@wiki.example/mcp?k=v": "https://ann:xxxxx@wiki.example/mcp?…",
	} {
		if got := loggedURL(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
