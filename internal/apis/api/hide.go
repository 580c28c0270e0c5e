package api

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// minSecret is the length of the shortest text that is hidden. Shorter ones are in too
// many other texts.
const minSecret = 6

// Credentials are the configured credentials of a service.
type Credentials [][]byte

// Credentials are those in the settings and headers.
func (e Environment) Credentials() (all Credentials) {
	add := func(text string) {
		if len(text) >= minSecret {
			all = append(all, []byte(text))
		}
	}
	s := e.Settings
	for _, value := range slices.Concat(slices.Collect(maps.Values(s.Query)), slices.Collect(maps.Values(s.Cookies)), []string{s.Password}) {
		add(value)
	}
	for name, values := range e.Header {
		if strings.HasPrefix(name, "Accept") || name == "User-Agent" || name == "Content-Type" {
			continue
		}
		for _, value := range values {
			if scheme, rest, ok := strings.Cut(value, " "); ok && !strings.Contains(rest, " ") && len(scheme) < 10 {
				value = rest
			}
			add(value)
		}
	}
	return all
}

// Hide removes the credentials from what a service answered. Some services repeat them.
func (c Credentials) Hide(text []byte) []byte {
	for _, secret := range c {
		if bytes.Contains(text, secret) {
			text = bytes.ReplaceAll(text, secret, []byte("[secret]"))
		}
	}
	return text
}
