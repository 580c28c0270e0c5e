package egress

import "net/url"

// Env returns the variables, as NAME=value, by which the program finds the proxy at
// address, and the placeholders of its secrets.
func (g *Gateway) Env(address string) []string {
	proxy := (&url.URL{Scheme: "http", User: url.UserPassword("luanette", g.password), Host: address}).String()
	env := []string{"NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"="+proxy)
	}
	if g.files != nil {
		env = append(env, g.files.Env()...)
	}
	for _, s := range g.secrets {
		if s.variable != "" {
			env = append(env, s.variable+"="+s.placeholder)
		}
	}
	return env
}

// Files are the certificates that the program must be able to read.
func (g *Gateway) Files() []string {
	if g.files == nil {
		return nil
	}
	return g.files.Paths()
}
