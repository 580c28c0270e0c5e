package upstreamstore

import (
	"net/url"
)

// secret tells whether something of the server may be one: whatever is sent in
// headers, and what stands in the query of its address.
func (s Server) secret() bool {
	if len(s.Headers) > 0 {
		return true
	}
	u, err := url.Parse(s.URL)
	return err != nil || u.RawQuery != "" || u.User != nil
}

// SameOrigin tells whether two addresses are of one server, so that what is sent to
// the one may be sent to the other.
func SameOrigin(a, b string) bool {
	one, err := url.Parse(a)
	if err != nil {
		return false
	}
	other, err := url.Parse(b)
	return err == nil && one.Scheme == other.Scheme && one.Host == other.Host
}
