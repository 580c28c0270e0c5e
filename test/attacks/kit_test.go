package attacks

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
)

// newRedirect is a server that sends everybody elsewhere.
func newRedirect(t *testing.T, to string, status int) string {
	s := httptest.NewServer(http.RedirectHandler(to, status))
	t.Cleanup(s.Close)
	return s.URL
}

// called is what an answer calls something.
func called(pattern, answer string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(answer); m != nil {
		return m[1]
	}
	return ""
}

func sessionID(answer string) string { return called(`"session_id":"([^"]+)"`, answer) }
