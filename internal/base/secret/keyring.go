package secret

import (
	"errors"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/luanette/luanette/internal/base/fault"
)

// keyringTimeout leaves time to unlock the keyring in a dialog.
const keyringTimeout = 30 * time.Second

// FromKeyring reads a secret from the operating system's keyring.
func FromKeyring(service, name string) (Text, error) {
	type answer struct {
		value string
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := keyring.Get(service, name)
		done <- answer{value, err}
	}()
	timer := time.NewTimer(keyringTimeout)
	defer timer.Stop()
	select {
	case a := <-done:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			return Text{}, fault.New(fault.Config, "the keyring has no %s/%s", service, name).
				WithHint("store it; on Linux: secret-tool store --label=luanette service %s username %s", service, name)
		case a.err != nil:
			return Text{}, fault.Wrap(fault.Config, a.err, "read the keyring").
				WithHint("a server without a desktop has none: use ${env:NAME} or ${file:PATH}")
		}
		return New(a.value), nil
	case <-timer.C:
		return Text{}, fault.New(fault.Timeout, "the keyring did not answer within %v", keyringTimeout).
			WithHint("it may be waiting to be unlocked")
	}
}
