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

var session = regexp.MustCompile(`"session_id":"([^"]+)"`)

func sessionID(answer string) string {
	if m := session.FindStringSubmatch(answer); m != nil {
		return m[1]
	}
	return ""
}
