package httpauth

import (
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/netguard"
)

const (
	failuresLogged  = 20 // refusals of one address in a minute that are logged
	failuresAllowed = 20 // different wrong keys of one address in a minute, and logins with one of them
	failuresTracked = 10_000
)

// remote is the address a request comes from.
func (a *Authenticator) remote(r *http.Request) string { return a.options.Browsers.Proxies.Client(r) }

// countRefusal counts a refused request and reports whether to log it.
func (a *Authenticator) countRefusal(r *http.Request) bool {
	return a.refusals.add(netguard.Source(a.remote(r)), "", time.Now()) <= failuresLogged
}

// failures counts by address, key and minute.
type failures struct {
	mu     sync.Mutex
	minute time.Time
	counts map[string]map[string]int
}

// add counts a failure with a key and returns how many there were.
func (f *failures) add(from, key string, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now = now.Truncate(time.Minute); !now.Equal(f.minute) || len(f.counts) > failuresTracked {
		f.minute, f.counts = now, map[string]map[string]int{}
	}
	keys := f.counts[from]
	if keys == nil {
		keys = map[string]int{}
		f.counts[from] = keys
	}
	keys[key]++
	return keys[key]
}

// blocked reports whether an address tried too many different keys, or this one too
// often, and when it may try again. One wrong key that a program repeats does not keep
// others at the same address from logging in.
func (f *failures) blocked(from, key string, now time.Time) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	minute, keys := now.Truncate(time.Minute), f.counts[from]
	if !minute.Equal(f.minute) || len(keys) < failuresAllowed && keys[key] < failuresAllowed {
		return 0, false
	}
	return minute.Add(time.Minute).Sub(now), true
}

// keyID identifies a key in counters without keeping it.
func keyID(token string) string {
	hash := apikey.HashOf(token)
	return string(hash[:8])
}
