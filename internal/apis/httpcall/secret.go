package httpcall

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// minSecret is the length of the shortest text that is hidden. Shorter ones are in too
// many other texts.
const minSecret = 6

// Hide removes the configured credentials from what a service answered. Some services
// repeat them.
func (c *Client) Hide(text []byte) []byte {
	for _, secret := range c.secrets() {
		if bytes.Contains(text, secret) {
			text = bytes.ReplaceAll(text, secret, []byte("[secret]"))
		}
	}
	return text
}

func (c *Client) secrets() (list [][]byte) {
	c.once.Do(func() {
		add := func(text string) {
			if len(text) >= minSecret {
				c.hidden = append(c.hidden, []byte(text))
			}
		}
		s := c.env.Settings
		for _, value := range slices.Concat(slices.Collect(maps.Values(s.Query)), slices.Collect(maps.Values(s.Cookies)), []string{s.Password}) {
			add(value)
		}
		for name, values := range c.env.Header {
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
	})
	return c.hidden
}
