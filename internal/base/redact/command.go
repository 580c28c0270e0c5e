package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// longestCommand limits the length of a command line.
const longestCommand = 300

// Command formats a command line for people, without the values of flags and settings
// with secret names, credentials in URLs, and words that look like keys.
func Command(name string, args []string) string {
	words := []string{quoted(name)}
	for _, arg := range Args(args) {
		words = append(words, quoted(arg))
	}
	return Cut(strings.Join(words, " "), longestCommand)
}

// Args returns a command's arguments without secrets.
func Args(args []string) []string {
	shown := make([]string, len(args))
	hideNext := false
	for i, arg := range args {
		flag := strings.HasPrefix(arg, "-")
		switch {
		case hideNext && !flag:
			arg, hideNext = Hidden, false
		case flag && !strings.ContainsAny(arg, "=: "):
			hideNext = Secret(arg)
		default:
			arg, hideNext = word(arg), false
		}
		shown[i] = arg
	}
	return shown
}

// assignment matches "key=value" or "Key: value", as a flag or not.
var assignment = regexp.MustCompile(`^(-*[A-Za-z][\w.-]*)(=|:\s+)(.+)$`)

// word hides the secrets in one argument.
func word(arg string) string {
	if m := assignment.FindStringSubmatch(arg); m != nil {
		if Secret(m[1]) {
			return m[1] + m[2] + Hidden
		}
		return m[1] + m[2] + word(m[3])
	}
	if u, err := url.Parse(arg); err == nil && u.Scheme != "" && u.Host != "" {
		return address(u)
	}
	if looksLikeKey(arg) {
		return Hidden
	}
	return arg
}

// address returns a URL without password and query.
func address(u *url.URL) string {
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	u.Fragment = ""
	return u.Redacted()
}

// keyPrefixes are the prefixes of keys of well-known services.
var keyPrefixes = []string{"sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "AIza", "eyJ", "npm_", "hf_", "Bearer "}

var (
	keyShape = regexp.MustCompile(`^[A-Za-z0-9+/_=-]{32,}$`)
	letters  = regexp.MustCompile(`[A-Za-z]`)
)

// looksLikeKey reports whether a word looks generated: it has a known prefix, or is a
// long run of letters and digits.
func looksLikeKey(word string) bool {
	for _, prefix := range keyPrefixes {
		if strings.HasPrefix(word, prefix) && len(word) > len(prefix)+8 {
			return true
		}
	}
	isPath := strings.HasPrefix(word, "/") || strings.Count(word, "/") > 1
	isName := strings.Count(word, "-") > 3 || !strings.ContainsAny(word, "0123456789") || !letters.MatchString(word)
	return keyShape.MatchString(word) && !isPath && !isName
}

// quoted quotes words that contain spaces.
func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\n\"'") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
