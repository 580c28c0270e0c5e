// Package oskeyring reads the operating system's keyring: Secret Service over D-Bus
// on Linux, the keychain on macOS, the credential manager on Windows.
package oskeyring

import (
	"errors"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// patience is how long a keyring may take, which may ask its person to open it.
const patience = 30 * time.Second

// Get reads a secret.
func Get(service, name string) (secret.Text, error) {
	type answer struct {
		value string
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := keyring.Get(service, name)
		done <- answer{value, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-done:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			return secret.Text{}, fault.New(fault.Config, "the keyring has no %s/%s", service, name).
				WithHint("store it; on Linux: secret-tool store --label=luanette service %s username %s", service, name)
		case a.err != nil:
			return secret.Text{}, fault.Wrap(fault.Config, a.err, "ask the keyring").
				WithHint("a server without a desktop has none: use ${env:NAME} or ${file:PATH}")
		}
		return secret.New(a.value), nil
	case <-timer.C:
		return secret.Text{}, fault.New(fault.Timeout, "the keyring did not answer within %v", patience).
			WithHint("it may wait to be opened")
	}
}
