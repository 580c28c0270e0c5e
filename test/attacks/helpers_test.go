package attacks

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
)

// newRedirect starts a server that redirects every request.
func newRedirect(t *testing.T, to string, status int) string {
	s := httptest.NewServer(http.RedirectHandler(to, status))
	t.Cleanup(s.Close)
	return s.URL
}

// submatch returns the first group of a pattern in an answer, or "".
func submatch(pattern, answer string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(answer); m != nil {
		return m[1]
	}
	return ""
}

func sessionID(answer string) string { return submatch(`"session_id":"([^"]+)"`, answer) }
