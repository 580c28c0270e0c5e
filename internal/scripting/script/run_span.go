package script

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
	"github.com/luanette/luanette/internal/store/cas"
)

// spanAttributes names the script, who runs it, and its parameters, shortened so that a
// large parameter cannot fill a trace.
func spanAttributes(ctx context.Context, q Request) []attribute.KeyValue {
	attributes := append(jobAttributes(q), attribute.String("script.name", q.name()))
	switch {
	case q.Creator != "":
		attributes = append(attributes, attribute.String("script.creator", q.Creator))
	case q.Caller != nil && q.Caller.ID != "":
		attributes = append(attributes, attribute.String("script.creator", q.Caller.ID))
	}
	if scope := tool.ScopeOf(ctx); scope != nil && scope.HideArgs {
		return attributes
	}
	return append(attributes, params.Attributes("script.params", q.Params)...)
}

// jobAttributes names the script, and the job if it is one. All spans of a job have them.
func jobAttributes(q Request) []attribute.KeyValue {
	hash := q.Hash
	if hash == (cas.Ref{}) {
		hash = cas.Sum([]byte(q.Source))
	}
	attributes := []attribute.KeyValue{attribute.String("script.hash", hash.String())}
	if q.Job != "" {
		attributes = append(attributes, attribute.String("job.id", q.Job))
	}
	return attributes
}
