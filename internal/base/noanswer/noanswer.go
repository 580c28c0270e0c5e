// Package noanswer tells what is known of a request that got no answer.
package noanswer

import (
	"errors"
	"net"
	"net/url"

	"github.com/luanette/luanette/internal/base/certpool"
)

// Reason is why a request got no answer.
type Reason struct {
	Err     error  // without the URL, which may contain secrets
	Hint    string // what to do about a certificate that is not accepted; empty for other reasons
	NotSent bool   // no connection was made, so the service has not seen the request
}

// Of finds the reason in the error of an HTTP client.
func Of(err error) Reason {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	hint := certpool.Hint(err)
	var op *net.OpError
	return Reason{err, hint, hint != "" || errors.As(err, &op) && op.Op == "dial"}
}
