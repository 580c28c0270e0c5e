package oauth

import (
	"context"
	"net/netip"
)

// Resolving makes names be looked up by f.
func (o Options) Resolving(f func(ctx context.Context, host string) ([]netip.Addr, error)) Options {
	o.lookup = f
	return o
}
