package upstreamstore

import (
	"net/url"
)

// secret reports whether the settings may contain a secret: in the headers, or in the
// query of the URL.
func (s Server) secret() bool {
	if len(s.Headers) > 0 {
		return true
	}
	u, err := url.Parse(s.URL)
	return err != nil || u.RawQuery != "" || u.User != nil
}

// SameOrigin reports whether two URLs belong to the same server, so that headers for
// one may be sent to the other.
func SameOrigin(a, b string) bool {
	one, err := url.Parse(a)
	if err != nil {
		return false
	}
	other, err := url.Parse(b)
	return err == nil && one.Scheme == other.Scheme && one.Host == other.Host
}
