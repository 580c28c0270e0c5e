package tagged

import (
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/secret"
)

// HiddenValue is shown in place of a secret.
const HiddenValue = "(hidden)"

// Hidden returns a copy of settings without what the tag secret of their fields says.
func Hidden[T any](settings T) T {
	_ = Texts(&settings, "secret", func(kind, text string) (string, error) { return Hide(kind, text), nil })
	return settings
}

// Hide returns a text as it is shown; kind is the tag secret of its field.
func Hide(kind, text string) string {
	switch kind {
	case "all":
		return secret.Shown(text)
	case "values":
		if secret.IsReference(text) && secret.Shown(text) == text || strings.HasPrefix(text, secret.Prefix) {
			return text
		}
		return HiddenValue
	case "url":
		return hidePassword(text)
	case "address":
		return hideQuery(hidePassword(text))
	case "query":
		return hideQuery(text)
	}
	if text == "" {
		return ""
	}
	return HiddenValue
}

// withReference is a URL whose password is a reference to a secret.
var withReference = lazyregexp.New(`^[a-z]+://[^:/?#@]*:(\$\{[^}]*\})@[^@?#]*(\?[^#]*)?$`)

// hideAroundReference returns a URL whose password is a reference, which may contain slashes.
// Of any other text that is no URL, the position of the password is unknown.
func hideAroundReference(text string) string {
	found := withReference().FindStringSubmatch(text)
	if found == nil || !secret.IsReference(found[1]) {
		return HiddenValue
	}
	rest, err := url.Parse(strings.Replace(text, found[1], "reference", 1))
	if err != nil || rest.Query().Has("password") {
		return HiddenValue
	}
	return text
}

// hidePassword returns a URL without its password.
func hidePassword(text string) string {
	if strings.HasPrefix(text, "sqlite:") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return hideAroundReference(text)
	}
	if query := u.Query(); query.Has("password") {
		query.Del("password")
		u.RawQuery = query.Encode()
	}
	if _, has := u.User.Password(); !has {
		return u.String()
	}
	u.User = url.User(u.User.Username())
	return strings.Replace(u.String(), "@", ":"+HiddenValue+"@", 1)
}

func hideQuery(text string) string {
	if before, _, has := strings.Cut(text, "?"); has {
		return before + "?" + HiddenValue
	}
	return text
}
