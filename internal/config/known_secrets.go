package config

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/secret"
)

// minSecret is the length from which on a value is taken for a secret: shorter ones are
// parts of ordinary words.
const minSecret = 6

// KnownSecrets returns the values in the configuration and the environment that may be
// secret, the longest first, so that they can be removed from a text.
func (l *Loaded) KnownSecrets(env Environment) []string {
	found := secretSet{finder: l.SecretFinder(env), values: map[string]bool{}}
	for name, value := range env {
		if mayBeSecret(name) || l.namesVariable(name) {
			found.add(value)
		}
		found.addURL(value)
	}
	for _, s := range settingsOf(&l.Config) {
		if text, ok := s.field.Interface().(string); ok && s.secret == "all" {
			found.add(text)
		} else if ok {
			found.addURL(text)
		}
	}
	for _, s := range l.Secrets {
		found.add(s.Value)
	}
	l.addUpstreams(found, env)
	l.addToolsAndHooks(found)
	return found.sorted()
}

// addToolsAndHooks adds the secrets of commands and webhooks.
func (l *Loaded) addToolsAndHooks(found secretSet) {
	for _, t := range l.Tools {
		found.addValues(t.Env)
	}
	for _, h := range l.Hooks {
		found.add(h.Secret)
		found.add(h.OldSecret)
	}
}

// addUpstreams adds the secrets of all upstreams, also of imported ones.
func (l *Loaded) addUpstreams(found secretSet, env Environment) {
	for _, u := range l.Upstreams {
		found.addUpstream(u)
	}
	specs, _, err := l.UpstreamSpecs(env)
	if err != nil {
		return // one with a mistake cannot be used
	}
	for _, spec := range specs {
		found.addURL(spec.URL)
		found.addValues(spec.Headers)
		found.addValues(spec.Env)
	}
}

// mayBeSecret reports whether the value of a variable may be secret. More names count than
// in redact.Secret, since a wrong guess only hides a value.
func mayBeSecret(name string) bool {
	upper := strings.ToUpper(name)
	return redact.Secret(name) || slices.ContainsFunc([]string{"KEY", "PASS", "PWD", "AUTH", "DSN"}, func(word string) bool {
		return strings.Contains(upper, word) && upper != "PWD" && upper != "OLDPWD"
	})
}

// namesVariable reports whether the configuration takes a credential from a variable.
func (l *Loaded) namesVariable(name string) bool {
	for _, u := range l.Upstreams {
		if u.BearerEnv == name {
			return true
		}
	}
	for _, key := range l.Keys {
		if key.Env == name {
			return true
		}
	}
	return l.Chat.KeyEnv == name
}

// secretSet collects secrets.
type secretSet struct {
	finder secret.Finder
	values map[string]bool
}

// add adds a value, and what it refers to.
func (s secretSet) add(text string) {
	if secret.IsReference(text) {
		found, err := s.finder.Find(text)
		if err != nil {
			return // it cannot be found here, so it is not here
		}
		text = found.Reveal()
	}
	for _, part := range []string{text, strings.TrimPrefix(text, "Bearer ")} {
		if len(part) >= minSecret {
			s.values[part] = true
		}
	}
}

func (s secretSet) addValues(values map[string]string) {
	for _, value := range values {
		s.add(value)
	}
}

// addURL adds the password and the values of the query of a URL.
func (s secretSet) addURL(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	if password, has := u.User.Password(); has {
		s.add(password)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			s.add(value)
		}
	}
}

// addUpstream adds the settings of an upstream that are tagged as secret, and arguments of
// its command that look so.
func (s secretSet) addUpstream(u Upstream) {
	s.addValues(u.Env)
	s.addValues(u.Headers)
	s.addURL(u.OpenAPI)
	s.addURL(u.GraphQL)
	if u.API != nil {
		s.addValues(u.API.Query)
		s.addValues(u.API.Cookies)
		s.add(u.API.Password)
	}
	for i, shown := range redact.Args(u.Args) {
		if shown != u.Args[i] {
			_, value, assigned := strings.Cut(u.Args[i], "=")
			if !assigned {
				value = u.Args[i]
			}
			s.add(value)
		}
	}
	for _, nested := range []any{u.OAuth, u.Curve} {
		v := reflect.ValueOf(nested)
		if v.IsNil() {
			continue
		}
		for i := range v.Elem().NumField() {
			if v.Elem().Type().Field(i).Tag.Get("secret") == "all" {
				s.add(v.Elem().Field(i).String())
			}
		}
	}
}

func (s secretSet) sorted() []string {
	list := make([]string, 0, len(s.values))
	for value := range s.values {
		list = append(list, value)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return list
}
