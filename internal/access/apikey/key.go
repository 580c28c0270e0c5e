package apikey

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Hash stands for a token, which itself is not kept.
type Hash [sha256.Size]byte

// HashOf is the hash of a token. Ours have 130 random bits, so that a fast hash
// is enough: there is nothing to guess.
func HashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// ParseHash reads "sha256:" and 64 hexadecimal digits.
func ParseHash(text string) (hash Hash, err error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(hash) {
		return hash, fault.New(fault.Config, "the hash of a key must be sha256: and 64 hexadecimal digits").
			WithHint("printf %%s KEY | sha256sum prints them")
	}
	return Hash(raw), nil
}

// Key is a key as it is known to us: its hash, and what it opens.
type Key struct {
	Name string
	Hash Hash
	Rights
	Created time.Time // zero for those of the configuration
	Expires time.Time // zero: never
	Revoked time.Time // zero: not yet
	Used    time.Time // about when it was last shown; zero: never
	Fixed   bool      // of the configuration, where alone it can be changed
}

// Rights are what a key opens, and how far.
type Rights struct {
	Scopes     []principal.Scope `json:"scopes"`
	Org        string            `json:"org,omitempty"`
	User       string            `json:"user,omitempty"`
	Namespaces []string          `json:"namespaces,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	principal.Limits
}

// Principal is who asks with the key.
func (k *Key) Principal() principal.Principal {
	return principal.Principal{
		ID: idPrefix + k.Name, Name: k.Name, Org: k.Org, User: k.User,
		Scopes: k.Scopes, Namespaces: k.Namespaces, Tools: k.Tools, Limits: k.Limits, Expires: k.Expires,
	}
}

// idPrefix begins the IDs of those who ask with a key.
const idPrefix = "key:"

// Invalid tells why the key opens nothing any more, or "".
func (k *Key) Invalid(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	default:
		return ""
	}
}

var keyName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`) })

// Check refuses what makes no sense.
func (k *Key) Check() error {
	bad := func(format string, args ...any) *fault.Error { return fault.New(fault.InvalidParams, format, args...) }
	if !keyName().MatchString(k.Name) {
		return bad("%q is not a name for a key", k.Name).WithHint("take up to 64 letters, digits and . _ @ -, such as laptop or ci@build")
	}
	if err := k.checkScopes(); err != nil {
		return err
	}
	if k.Rate < 0 || k.Concurrent < 0 || k.Budget < 0 {
		return bad("the limits of a key are numbers above zero").WithHint("leave them away for none")
	}
	for _, pattern := range slices.Concat(k.Namespaces, k.Tools) {
		if strings.TrimSpace(pattern) == "" {
			return bad("an empty name of a namespace or tool").WithHint("use * for all")
		}
	}
	return nil
}

func (k *Key) checkScopes() error {
	if len(k.Scopes) == 0 {
		return fault.New(fault.InvalidParams, "the key %s opens nothing: it has no scope", k.Name).WithHint("there are %s", scopeNames())
	}
	for _, scope := range k.Scopes {
		if !slices.Contains(principal.Scopes, scope) {
			return fault.New(fault.InvalidParams, "no scope %q", scope).WithHint("there are %s", scopeNames())
		}
	}
	if slices.Contains(k.Scopes, principal.Org) && k.Org == "" {
		return fault.New(fault.InvalidParams, "the scope org takes an organisation").WithHint("say which one: --org NAME, or org in luanette.toml")
	}
	return nil
}

func scopeNames() string {
	var names []string
	for _, s := range principal.Scopes {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
