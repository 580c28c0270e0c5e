package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/luanette/luanette/internal/core/principal"
)

type inheritedKey struct{}

// WithAttributes returns a context whose spans all have these attributes: a search for a
// job finds its calls, not only its run.
func WithAttributes(ctx context.Context, all ...attribute.KeyValue) context.Context {
	return context.WithValue(ctx, inheritedKey{}, all)
}

// inheritor gives spans the attributes of their context, and those of its principal.
type inheritor struct{}

func (inheritor) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	if all, ok := ctx.Value(inheritedKey{}).([]attribute.KeyValue); ok {
		s.SetAttributes(all...)
	}
	if principal.Known(ctx) {
		s.SetAttributes(ownerAttributes(principal.OwnerOf(ctx))...)
	}
}

func (inheritor) OnEnd(sdktrace.ReadOnlySpan)      {}
func (inheritor) Shutdown(context.Context) error   { return nil }
func (inheritor) ForceFlush(context.Context) error { return nil }
